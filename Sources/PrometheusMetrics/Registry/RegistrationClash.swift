/// Why a series could not be registered, so that what it records is not rendered.
enum RegistrationClash: String, Sendable {
    /// The name belongs to a metric of another type, or was described as one.
    case type
    /// The metric has series with other label names, or two of the labels have the same name.
    case labels
    /// A sample of the metric would carry the name of another metric's sample, such as `x_count` beside a histogram `x`.
    case name

    /// The counter that tells of clashes, with the label `reason`.
    static let counter = MetricDescription(
        name: "metrics_registration_clashes_total",
        help: "Metrics made under a name whose type or labels were already different; their values are not shown.",
        kind: .counter
    )
}
