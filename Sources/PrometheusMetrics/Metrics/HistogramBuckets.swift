/// Upper bounds of histogram buckets.
package enum HistogramBuckets {
    /// OpenTelemetry's recommendation for the duration of HTTP requests, in seconds.
    ///
    /// See https://opentelemetry.io/docs/specs/semconv/http/http-metrics/.
    package static let httpDurationSeconds: [Double] = [
        0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10,
    ]

    /// Sorts bounds, and drops duplicates and what is not finite: `+Inf` is always there and is never listed.
    static func ordered(_ bounds: [Double]) -> [Double] {
        var result: [Double] = []
        for bound in bounds.filter(\.isFinite).sorted() where result.last != bound {
            result.append(bound)
        }
        return result
    }
}
