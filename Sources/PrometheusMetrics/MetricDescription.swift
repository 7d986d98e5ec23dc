/// What a metric means, said before it is first used.
///
/// The exposition format wants a help text and a type for every metric, and swift-metrics has no place for either. A
/// registry keeps descriptions by name and applies them when a metric of that name is made.
package struct MetricDescription: Sendable, Equatable {
    /// The types of metric, by their names in the exposition format.
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
    package let help: String
    /// A metric of another type under this name counts as a clash.
    package let kind: Kind
    /// Upper bounds of a histogram's buckets in its base unit, ascending, `+Inf` left out; nil takes the registry's.
    package let buckets: [Double]?

    /// Describes one metric; buckets are put in order, duplicates and bounds that are not finite dropped.
    package init(name: String, help: String, kind: Kind, buckets: [Double]? = nil) {
        self.name = MetricName.valid(name, kind: kind)
        self.help = help
        self.kind = kind
        self.buckets = buckets.map(Self.ordered)
    }

    /// Sorts bounds, and drops duplicates and what is not finite: `+Inf` is always there and is never listed.
    static func ordered(_ bounds: [Double]) -> [Double] {
        var result: [Double] = []
        for bound in bounds.filter(\.isFinite).sorted() where result.last != bound {
            result.append(bound)
        }
        return result
    }
}

/// Turns the names programs use into names the exposition format allows.
enum MetricName {
    /// Makes a metric's name valid: `[a-zA-Z_][a-zA-Z0-9_]*`, and for a counter the ending `_total`.
    ///
    /// Every other character becomes an underscore, the colon too: the format allows it, but leaves it to recording
    /// rules.
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
    /// Names beginning with `__` are Prometheus' own. In a histogram `le` is the bucket's bound; a label of that name
    /// gets the prefix that Prometheus itself uses for labels that were taken.
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
