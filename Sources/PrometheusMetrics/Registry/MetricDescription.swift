/// What a metric means, said before it is first used.
///
/// The exposition format wants a help text and a type for every metric, and swift-metrics has no place for either. A
/// registry keeps descriptions by name and applies them when a metric of that name is made.
package struct MetricDescription: Sendable, Equatable {
    /// The types of metric this module renders, by their names in the exposition format.
    package enum Kind: String, Sendable, Equatable {
        /// A sum that only grows; its name ends in `_total`.
        case counter
        /// A value that goes up and down.
        case gauge
        /// Counts of observations by upper bound, with their sum.
        case histogram
    }

    /// The metric's name, made valid as `PrometheusRegistry` does for names it is given.
    package let name: String

    /// The text of the `HELP` line.
    package let help: String

    /// The metric's type; a metric of another type under this name counts as a clash.
    package let kind: Kind

    /// Upper bounds of a histogram's buckets in its base unit, ascending, `+Inf` left out; nil takes the registry's.
    package let buckets: [Double]?

    /// Describes one metric.
    ///
    /// - Parameters:
    ///   - name: The name under which the program makes the metric; a counter's `_total` may be left out.
    ///   - help: One sentence for whoever reads the metric.
    ///   - kind: The metric's type.
    ///   - buckets: A histogram's upper bounds in its base unit (seconds for timers); put in order, duplicates and
    ///     bounds that are not finite dropped. Other types ignore them.
    package init(name: String, help: String, kind: Kind, buckets: [Double]? = nil) {
        self.name = MetricName.valid(name, kind: kind)
        self.help = help
        self.kind = kind
        self.buckets = buckets.map(HistogramBuckets.ordered)
    }
}
