/// A metric's description, given before its first use.
///
/// The exposition format requires a help text and a type for each metric, and swift-metrics has neither. A registry
/// keeps descriptions by name, and applies them when a metric with that name is created.
package struct MetricDescription: Sendable, Equatable {
    /// The types of metrics, with their names in the exposition format.
    package enum Kind: String, Sendable, Equatable {
        /// A sum that only grows. Its name ends in `_total`.
        case counter
        /// A value that goes up and down.
        case gauge
        /// Counts of observations by upper bound, with their sum.
        case histogram
    }

    /// The metric's name, made valid as in `PrometheusRegistry`.
    package let name: String
    package let help: String
    /// A metric of another type with this name is a clash.
    package let kind: Kind
    /// The upper bounds of a histogram's buckets in its base unit, ascending, without `+Inf`; nil for the registry's.
    package let buckets: [Double]?

    /// Describes one metric. Sorts buckets, and drops duplicates and bounds that are not finite.
    package init(name: String, help: String, kind: Kind, buckets: [Double]? = nil) {
        self.name = MetricName.valid(name, kind: kind)
        self.help = help
        self.kind = kind
        self.buckets = buckets.map(Self.ordered)
    }

    /// Sorts bounds, and drops duplicates and infinite ones: `+Inf` always exists and is never listed.
    static func ordered(_ bounds: [Double]) -> [Double] {
        var result: [Double] = []
        for bound in bounds.filter(\.isFinite).sorted() where result.last != bound {
            result.append(bound)
        }
        return result
    }
}

/// Converts programs' names to names that the exposition format allows.
enum MetricName {
    /// Makes a metric's name valid: `[a-zA-Z_][a-zA-Z0-9_]*`, with the ending `_total` for a counter.
    ///
    /// Every other character becomes an underscore, including the colon: the format allows it, but reserves it for
    /// recording rules.
    static func valid(_ name: String, kind: MetricDescription.Kind) -> String {
        let name = Self.identifier(name)
        switch kind {
        case .counter:
            return name.hasSuffix("_total") ? name : name + "_total"
        case .gauge, .histogram:
            return name
        }
    }

    /// Makes a label's name valid: `[a-zA-Z_][a-zA-Z0-9_]*`, not beginning with two underscores.
    ///
    /// Names that begin with `__` are Prometheus's own. In a histogram, `le` is the bucket's bound. A label with that
    /// name gets the prefix that Prometheus itself uses for conflicting labels.
    static func validLabel(_ name: String, kind: MetricDescription.Kind) -> String {
        var name = Self.identifier(name)
        while name.hasPrefix("__") {
            name.removeFirst()
        }
        return kind == .histogram && name == "le" ? "exported_le" : name
    }

    private static func identifier(_ name: String) -> String {
        var result = String.UnicodeScalarView()
        for scalar in name.unicodeScalars {
            switch scalar {
            case "a"..."z", "A"..."Z", "_":
                result.append(scalar)
            case "0"..."9":
                if result.isEmpty {
                    result.append("_")
                }
                result.append(scalar)
            default:
                result.append("_")
            }
        }
        return result.isEmpty ? "_" : String(result)
    }
}
