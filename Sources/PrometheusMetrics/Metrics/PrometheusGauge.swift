import CoreMetrics
import Synchronization

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

extension PrometheusGauge: MeterHandler {
    func set(_ value: Int64) {
        self.set(Double(value))
    }

    func set(_ value: Double) {
        self.value.store(value, ordering: .relaxed)
    }

    func increment(by amount: Double) {
        self.value.add(amount)
    }

    func decrement(by amount: Double) {
        self.value.add(-amount)
    }
}

extension PrometheusGauge: RecorderHandler {
    func record(_ value: Int64) {
        self.set(value)
    }

    func record(_ value: Double) {
        self.set(value)
    }
}
