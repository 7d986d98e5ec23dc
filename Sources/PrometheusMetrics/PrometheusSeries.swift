import CoreMetrics
import Synchronization

/// One series: a metric with one set of label values.
protocol PrometheusSeries: AnyObject, Sendable {
    static var kind: MetricDescription.Kind { get }

    var identity: SeriesIdentity { get }

    /// Makes a series without a sample; only histograms have buckets.
    init(identity: SeriesIdentity, buckets: [Double])

    func write(to writer: inout ExpositionWriter)
}

/// A sum of whole numbers that only grows.
///
/// Fractions are added up by swift-metrics, and come here once they are whole.
final class PrometheusCounter: PrometheusSeries, CounterHandler {
    static let kind = MetricDescription.Kind.counter

    let identity: SeriesIdentity
    private let value = Atomic<UInt64>(0)

    init(identity: SeriesIdentity, buckets: [Double]) {
        self.identity = identity
    }

    func write(to writer: inout ExpositionWriter) {
        writer.writeSample(self.identity, value: self.value.load(ordering: .relaxed).description)
    }

    /// Adds an amount; one below zero is ignored, since a counter that falls reads as a restart.
    func increment(by amount: Int64) {
        guard amount > 0 else { return }
        self.value.wrappingAdd(UInt64(amount), ordering: .relaxed)
    }

    func reset() {
        self.value.store(0, ordering: .relaxed)
    }
}

/// A value that goes up and down.
final class PrometheusGauge: PrometheusSeries {
    static let kind = MetricDescription.Kind.gauge

    let identity: SeriesIdentity
    private let value = Atomic<Double>(0)

    init(identity: SeriesIdentity, buckets: [Double]) {
        self.identity = identity
    }

    func write(to writer: inout ExpositionWriter) {
        writer.writeSample(self.identity, value: ExpositionWriter.text(self.value.load(ordering: .relaxed)))
    }
}

extension PrometheusGauge: MeterHandler, RecorderHandler {
    func set(_ value: Int64) { self.set(Double(value)) }
    func set(_ value: Double) { self.value.store(value, ordering: .relaxed) }
    func increment(by amount: Double) { self.value.add(amount) }
    func decrement(by amount: Double) { self.value.add(-amount) }
    func record(_ value: Int64) { self.set(value) }
    func record(_ value: Double) { self.set(value) }
}

/// Counts observations by upper bound and sums them.
///
/// An observation is counted in the one bucket it falls into; the format's running totals are added up when rendered,
/// and the total number with them, so that `+Inf` and `_count` always agree.
final class PrometheusHistogram: PrometheusSeries {
    /// One bucket's observations.
    ///
    /// An `Atomic` cannot be an array's element, a reference to one can.
    private final class Bucket: Sendable {
        let count = Atomic<UInt64>(0)
    }

    static let kind = MetricDescription.Kind.histogram

    let identity: SeriesIdentity
    private let bounds: [Double]
    /// One more than there are bounds: the last has none.
    private let buckets: [Bucket]
    private let sum = Atomic<Double>(0)

    init(identity: SeriesIdentity, buckets: [Double]) {
        self.identity = identity
        self.bounds = buckets
        self.buckets = (0...buckets.count).map { _ in Bucket() }
    }

    func write(to writer: inout ExpositionWriter) {
        var count: UInt64 = 0
        for (index, bucket) in self.buckets.enumerated() {
            count += bucket.count.load(ordering: .relaxed)
            let bound = index < self.bounds.count ? self.bounds[index] : .infinity
            writer.writeSample(
                self.identity,
                suffix: "_bucket",
                bound: ExpositionWriter.text(bound),
                value: count.description
            )
        }
        let sum = ExpositionWriter.text(self.sum.load(ordering: .relaxed))
        writer.writeSample(self.identity, suffix: "_sum", value: sum)
        writer.writeSample(self.identity, suffix: "_count", value: count.description)
    }

    private func observe(_ value: Double) {
        // Bounds are few and small values frequent: a walk from the lowest is as quick as a search.
        var index = 0
        while index < self.bounds.count, value > self.bounds[index] {
            index += 1
        }
        self.buckets[index].count.wrappingAdd(1, ordering: .relaxed)
        self.sum.add(value)
    }
}

extension PrometheusHistogram: RecorderHandler, TimerHandler {
    func record(_ value: Int64) { self.observe(Double(value)) }

    /// Counts an observation; one that is not finite is ignored, since it would spoil the sum for good.
    func record(_ value: Double) {
        if value.isFinite { self.observe(value) }
    }

    /// Counts a duration, in seconds; one below zero, from a clock set back, counts as zero.
    func recordNanoseconds(_ duration: Int64) {
        self.observe(Double(max(0, duration)) / 1_000_000_000)
    }
}

extension Atomic where Value == Double {
    /// Adds an amount without a lock.
    ///
    /// No order with other memory is promised or needed: a scrape reads each number by itself.
    fileprivate func add(_ amount: Double) {
        var current = self.load(ordering: .relaxed)
        while true {
            let result = self.weakCompareExchange(expected: current, desired: current + amount, ordering: .relaxed)
            if result.exchanged {
                return
            }
            current = result.original
        }
    }
}
