import CoreMetrics
import Synchronization

/// One series: a metric with one set of label values.
protocol PrometheusSeries: AnyObject, Sendable {
    static var kind: MetricDescription.Kind { get }

    var identity: SeriesIdentity { get }

    /// Creates a series without a sample. Only histograms have buckets.
    init(identity: SeriesIdentity, buckets: [Double])

    func write(to writer: inout ExpositionWriter)
}

/// A sum of integers that only grows.
///
/// swift-metrics accumulates fractions, and records them when they are whole.
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

    /// Adds an amount. A negative one is ignored, since a counter that falls looks like a restart.
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
/// Each observation is counted in one bucket. Rendering adds up the format's running totals and the total number, so
/// that `+Inf` and `_count` always agree.
final class PrometheusHistogram: PrometheusSeries {
    /// One bucket's observations.
    ///
    /// A class, because an array can't hold an `Atomic`.
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
        // There are few bounds, and small values are frequent. A walk from the lowest is as fast as a search.
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

    /// Counts an observation. One that is not finite is ignored, since it would spoil the sum for ever.
    func record(_ value: Double) {
        if value.isFinite { self.observe(value) }
    }

    /// Counts a duration, in seconds. A negative one, after a clock was set back, counts as zero.
    func recordNanoseconds(_ duration: Int64) {
        self.observe(Double(max(0, duration)) / 1_000_000_000)
    }
}

extension Atomic where Value == Double {
    /// Adds an amount without a lock.
    ///
    /// No memory order is needed: a scrape reads each number separately.
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
