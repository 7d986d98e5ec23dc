/// Writes Prometheus' text exposition format, version 0.0.4.
///
/// See https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format.
struct ExpositionWriter {
    private(set) var bytes: [UInt8] = []

    /// Writes the lines before a metric's first series.
    mutating func writeHeader(name: String, help: String, kind: MetricDescription.Kind) {
        self.write("# HELP ")
        self.write(name)
        self.write(" ")
        for byte in help.utf8 {
            switch byte {
            case UInt8(ascii: "\\"):
                self.write(#"\\"#)
            case UInt8(ascii: "\n"):
                self.write(#"\n"#)
            default:
                self.bytes.append(byte)
            }
        }
        self.write("\n# TYPE ")
        self.write(name)
        self.write(" ")
        self.write(kind.rawValue)
        self.write("\n")
    }

    /// Writes one sample. A bucket's upper bound is in the label `le`.
    mutating func writeSample(_ identity: SeriesIdentity, suffix: String = "", bound: String? = nil, value: String) {
        self.write(identity.name)
        self.write(suffix)
        if !identity.labels.isEmpty || bound != nil {
            self.write("{")
            self.write(identity.labels)
            if let bound {
                if !identity.labels.isEmpty {
                    self.write(",")
                }
                self.write("le=\"")
                self.write(bound)
                self.write("\"")
            }
            self.write("}")
        }
        self.write(" ")
        self.write(value)
        self.write("\n")
    }

    /// Renders a number: integers without a fraction, infinities and NaN by the format's names.
    static func text(_ value: Double) -> String {
        if value.isNaN {
            return "NaN"
        }
        if value.isInfinite {
            return value < 0 ? "-Inf" : "+Inf"
        }
        // Every integer below 2^53 is exact, so the shorter text is equivalent.
        if value.magnitude < 9_007_199_254_740_992, let whole = Int64(exactly: value) {
            return whole.description
        }
        return value.description
    }

    private mutating func write(_ text: String) {
        self.bytes.append(contentsOf: text.utf8)
    }
}

/// The name and labels of one series, rendered once when the series is created.
struct SeriesIdentity: Sendable, Equatable {
    let name: String
    /// The labels' names, valid and sorted.
    let labelNames: [String]
    /// The labels as they are between the braces, sorted by name. Empty without labels.
    let labels: String
    /// True if two labels have the same name, so that the series can't be rendered.
    let hasDuplicateLabels: Bool

    /// Labels are sorted: the same labels in another order are the same series.
    init(name: String, dimensions: [(String, String)], kind: MetricDescription.Kind) {
        let pairs =
            dimensions
            .map { (name: MetricName.validLabel($0.0, kind: kind), value: $0.1) }
            .sorted { $0.name < $1.name }
        self.name = MetricName.valid(name, kind: kind)
        self.labelNames = pairs.map(\.name)
        self.labels = pairs.map { "\($0.name)=\"\(Self.escaped($0.value))\"" }.joined(separator: ",")
        self.hasDuplicateLabels = zip(self.labelNames, self.labelNames.dropFirst()).contains { $0 == $1 }
    }

    /// Escapes a label's value as the format requires: backslash, quotation mark and line feed.
    private static func escaped(_ value: String) -> String {
        var result = String.UnicodeScalarView()
        for scalar in value.unicodeScalars {
            switch scalar {
            case "\\":
                result.append(contentsOf: #"\\"#.unicodeScalars)
            case "\"":
                result.append(contentsOf: #"\""#.unicodeScalars)
            case "\n":
                result.append(contentsOf: #"\n"#.unicodeScalars)
            default:
                result.append(scalar)
            }
        }
        return String(result)
    }
}
