/// Writes Prometheus' text exposition format, version 0.0.4.
///
/// See https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format.
struct ExpositionWriter {
    /// What was written so far, UTF-8.
    private(set) var bytes: [UInt8] = []

    /// Writes the lines that stand before a metric's first series.
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

    /// Writes one sample.
    ///
    /// - Parameters:
    ///   - identity: The series.
    ///   - suffix: What follows the name, such as `_sum`.
    ///   - bound: A bucket's upper bound, as it stands in the label `le`.
    ///   - value: The rendered value.
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

    /// Renders a number: whole numbers without a fraction, infinities and NaN by the format's names.
    static func text(_ value: Double) -> String {
        if value.isNaN {
            return "NaN"
        }
        if value.isInfinite {
            return value < 0 ? "-Inf" : "+Inf"
        }
        // Below 2^53 every whole number is exact, so the shorter text says the same.
        if value.magnitude < 9_007_199_254_740_992, let whole = Int64(exactly: value) {
            return whole.description
        }
        return value.description
    }

    private mutating func write(_ text: String) {
        self.bytes.append(contentsOf: text.utf8)
    }
}
