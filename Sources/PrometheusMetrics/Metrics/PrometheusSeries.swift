/// One series: a metric with one set of label values.
protocol PrometheusSeries: AnyObject, Sendable {
    /// The type of the metric the series belongs to.
    static var kind: MetricDescription.Kind { get }

    /// The series' name and labels.
    var identity: SeriesIdentity { get }

    /// Makes a series without a sample.
    ///
    /// - Parameters:
    ///   - identity: The series' name and labels.
    ///   - buckets: A histogram's upper bounds; other types ignore them.
    init(identity: SeriesIdentity, buckets: [Double])

    /// Writes the series' samples.
    func write(to writer: inout ExpositionWriter)
}
