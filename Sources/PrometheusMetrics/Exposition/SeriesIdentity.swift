/// The name and labels of one series, rendered once, when the series is made.
struct SeriesIdentity: Sendable, Equatable {
    /// The metric's name, valid.
    let name: String

    /// The labels' names, valid and sorted.
    let labelNames: [String]

    /// The labels as they stand between the braces, sorted by name; empty without labels.
    let labels: String

    /// Whether two labels have the same name, so that the series cannot be rendered.
    let hasDuplicateLabels: Bool

    /// Renders a metric's name and labels.
    ///
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

    /// Escapes a label's value: backslash, quotation mark and line feed, as the format asks.
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
