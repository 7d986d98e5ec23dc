import CoreMetrics
import Testing

@testable import PrometheusMetrics

@Suite("PrometheusGauge")
struct PrometheusGaugeTests {
    @Test("A gauge is set, raised and lowered, by meter and by recorder")
    func moves() {
        let registry = PrometheusRegistry()
        let meter = Meter(label: "level", factory: registry)
        meter.set(10)
        meter.increment(by: 2.5)
        meter.decrement(by: 20)
        #expect(registry.render().hasSuffix("\nlevel -7.5\n"))
        Gauge(label: "level", factory: registry).record(4)
        #expect(registry.render().hasSuffix("\nlevel 4\n"))
        meter.set(0.125)
        #expect(registry.render().hasSuffix("\nlevel 0.125\n"))
    }
}
