/// The series of one name.
struct MetricFamily: Sendable {
    /// The type of all series.
    let kind: MetricDescription.Kind

    /// The label names of all series, sorted.
    let labelNames: [String]

    /// The series by their rendered labels.
    var series: [String: any PrometheusSeries] = [:]

    /// The names that the samples of the family carry, given the family's own.
    func sampleNames(_ name: String) -> [String] {
        switch self.kind {
        case .counter, .gauge:
            [name]
        case .histogram:
            [name + "_bucket", name + "_sum", name + "_count"]
        }
    }
}
