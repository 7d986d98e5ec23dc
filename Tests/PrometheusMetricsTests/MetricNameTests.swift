import Testing

@testable import PrometheusMetrics

@Suite("MetricName")
struct MetricNameTests {
    @Test(
        "Metric names are made valid",
        arguments: [
            ("jobs_total", MetricDescription.Kind.counter, "jobs_total"),
            ("jobs", .counter, "jobs_total"),
            ("http.server.requests", .counter, "http_server_requests_total"),
            ("http.server-duration", .histogram, "http_server_duration"),
            ("job:rate", .gauge, "job_rate"),
            ("2xx", .gauge, "_2xx"),
            ("größe", .gauge, "gr__e"),
            ("", .gauge, "_"),
            ("x2", .gauge, "x2"),
        ]
    )
    func metric(name: String, kind: MetricDescription.Kind, valid: String) {
        #expect(MetricName.valid(name, kind: kind) == valid)
    }

    @Test(
        "Label names are made valid",
        arguments: [
            ("status", MetricDescription.Kind.gauge, "status"),
            ("http.status", .gauge, "http_status"),
            ("__name__", .gauge, "_name__"),
            ("0", .gauge, "_0"),
            ("", .gauge, "_"),
            ("le", .gauge, "le"),
            ("le", .histogram, "exported_le"),
        ]
    )
    func label(name: String, kind: MetricDescription.Kind, valid: String) {
        #expect(MetricName.validLabel(name, kind: kind) == valid)
    }
}
