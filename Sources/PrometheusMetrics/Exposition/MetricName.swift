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
