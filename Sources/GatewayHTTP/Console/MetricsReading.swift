/// Some metrics as `/metrics` shows them at one moment.
///
/// The console reads them from the text that Prometheus reads, so that both always show the same.
struct MetricsReading {
    struct Sample {
        var labels: [Substring: String]
        var value: Double
    }

    private var samples: [Substring: [Sample]] = [:]

    /// Reads the samples of some metrics from a text in Prometheus' format. `names` have no suffix: the samples of a
    /// histogram are under its name with `_bucket`.
    init(_ text: String, names: Set<Substring>) {
        for line in text.utf8.split(separator: UInt8(ascii: "\n")) where line.first != UInt8(ascii: "#") {
            let name = Substring(line.prefix { $0 != UInt8(ascii: "{") && $0 != UInt8(ascii: " ") })
            guard names.contains(name), let blank = line.lastIndex(of: UInt8(ascii: " ")),
                let value = Double(String(Substring(line[blank...].dropFirst())))
            else { continue }
            let labels = Self.labels(Substring(line[..<blank]).dropFirst(name.count))
            self.samples[name, default: []].append(Sample(labels: labels, value: value))
        }
    }

    /// Reads `{name="value",…}`. Values have the escapes of a backslash, a quotation mark and a line feed.
    private static func labels(_ text: Substring) -> [Substring: String] {
        var labels: [Substring: String] = [:]
        var rest = text.dropFirst()
        while let equals = rest.firstIndex(of: "=") {
            let name = rest[..<equals]
            rest = rest[equals...].dropFirst(2)
            var value = ""
            while let character = rest.popFirst(), character != "\"" {
                guard character == "\\" else {
                    value.append(character)
                    continue
                }
                value.append(rest.popFirst().map { $0 == "n" ? "\n" : $0 } ?? "\\")
            }
            labels[name] = value
            rest = rest.dropFirst()
        }
        return labels
    }

    subscript(_ name: Substring) -> [Sample] { self.samples[name] ?? [] }

    /// The value of a metric without labels, or the sum over all labels; `nil` if it has no sample.
    func value(_ name: Substring) -> Double? {
        self.samples[name].map { $0.reduce(0) { $0 + $1.value } }
    }

    /// The sums of a metric over the other labels, by the value of one.
    func sums(_ name: Substring, by label: Substring) -> [String: Double] {
        self[name].reduce(into: [:]) { $0[$1.labels[label] ?? "", default: 0] += $1.value }
    }
}
