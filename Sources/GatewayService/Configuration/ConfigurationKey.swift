import Crypto
import GatewayCore
import Yams

/// A key that an operator can set: a row of ``ConfigurationTable``.
///
/// The part that reads the value owns the property. The property's initial value is the key's default.
package struct ConfigurationKey: Sendable {
    /// Converts between an operator's text and the value of a property.
    struct Format<Written: ConfigurationValue, Value: Sendable>: Sendable {
        let values: String
        var isSecret = false
        /// The problems of a value that can't be used. Never repeats a secret.
        let problems: @Sendable (Written) -> [String]
        let value: @Sendable (Written) -> Value?
        /// The value as an operator would write it in a variable.
        let text: @Sendable (Value) -> String
    }

    /// Sets a value in a configuration. If the value can't be used, returns the problems and leaves the property as it
    /// is.
    typealias Assignment = @Sendable (inout GatewayConfiguration) -> [String]

    package let path: String
    /// The allowed values, in words for documents. ``doc`` says in words what the key sets.
    package let values: String
    package let doc: String
    /// True if a reload can change the value. Otherwise only a start can change it.
    package let isReloadable: Bool
    package let isSecret: Bool

    /// Reads a node of the file. The assignment checks ranges later, because a variable may replace the value.
    let assignmentOfNode: @Sendable (Node) throws(ConfigurationFaults) -> Assignment
    let assignmentOfText: @Sendable (String) -> Assignment
    private let text: @Sendable (GatewayConfiguration) -> String
    /// Copies another configuration's value of this key.
    let copy: @Sendable (inout GatewayConfiguration, GatewayConfiguration) -> Void

    init<Written: ConfigurationValue, Value>(
        _ path: String,
        _ property: any WritableKeyPath<GatewayConfiguration, Value> & Sendable,
        _ format: Format<Written, Value>,
        _ doc: String,
        reloads: Bool = false
    ) {
        self.init(path, in: \GatewayConfiguration.self, property, format, doc, reloads: reloads)
    }

    /// A key whose property belongs to a part of the configuration.
    init<Part, Written: ConfigurationValue, Value>(
        _ path: String,
        in part: any WritableKeyPath<GatewayConfiguration, Part> & Sendable,
        _ property: any WritableKeyPath<Part, Value> & Sendable,
        _ format: Format<Written, Value>,
        _ doc: String,
        reloads: Bool = false
    ) {
        self.path = path
        self.values = format.values
        self.doc = doc
        self.isReloadable = reloads
        self.isSecret = format.isSecret
        let assignment = { @Sendable (written: Written) -> Assignment in
            { configuration in
                let problems = format.problems(written)
                if problems.isEmpty, let value = format.value(written) {
                    configuration[keyPath: part][keyPath: property] = value
                }
                return problems
            }
        }
        self.assignmentOfNode = { (node) throws(ConfigurationFaults) in assignment(try Written(node: node)) }
        self.assignmentOfText = { text in
            do throws(ConfigurationFaults) {
                return assignment(try Written(variable: text))
            } catch {
                let messages = error.faults.map(\.message)
                return { _ in messages }
            }
        }
        self.text = { format.text($0[keyPath: part][keyPath: property]) }
        self.copy = { $0[keyPath: part][keyPath: property] = $1[keyPath: part][keyPath: property] }
    }

    /// The value as in the file or a variable. Empty if there is none, and masked if it is secret.
    package func shown(_ configuration: GatewayConfiguration) -> String {
        let text = self.text(configuration)
        return self.isSecret && !text.isEmpty ? Redacted("").description : text
    }

    func fingerprint(_ configuration: GatewayConfiguration) -> String {
        let text = self.text(configuration)
        return self.isSecret ? SHA256.hash(data: Array(text.utf8)).description : text
    }

    package var variable: String { Self.variable(self.path) }

    /// The environment variables that set the key. A secret has a second variable, which names a file.
    package var variables: [String] { self.isSecret ? [self.variable, "\(self.variable)_FILE"] : [self.variable] }

    /// The variable of a path: `http.keepAliveTimeoutMs` is `GATEWAY_HTTP_KEEP_ALIVE_TIMEOUT_MS`.
    ///
    /// A word begins at a capital that does not follow a capital: `v1Endpoint` is `V1_ENDPOINT`.
    package static func variable(_ path: String) -> String {
        var name = "GATEWAY_"
        var previousIsBoundary = true
        for character in path {
            if character == "." {
                name.append("_")
                previousIsBoundary = true
            } else {
                if character.isUppercase, !previousIsBoundary { name.append("_") }
                name.append(character.uppercased())
                previousIsBoundary = character.isUppercase
            }
        }
        return name
    }
}

extension ConfigurationKey.Format where Written == Bool, Value == Bool {
    static var flag: Self {
        Self(values: "`true`, `false`", problems: { _ in [] }, value: { $0 }, text: { "\($0)" })
    }
}

extension ConfigurationKey.Format where Written == Double, Value == Double {
    /// A share, 0 to 1.
    static var ratio: Self {
        Self(
            values: "0 to 1",
            problems: { (0...1).contains($0) ? [] : ["must be from 0 to 1, not \($0)"] },
            value: { $0 },
            text: { $0 == $0.rounded() ? "\(Int($0))" : "\($0)" }
        )
    }
}

extension ConfigurationKey.Format where Written == Int, Value == Int {
    static func wholeNumber(_ range: ClosedRange<Int>) -> Self {
        Self(values: Self.readable(range), problems: { Self.problems($0, range) }, value: { $0 }, text: { "\($0)" })
    }
}

extension ConfigurationKey.Format where Written == Int, Value == Duration {
    static func milliseconds(_ range: ClosedRange<Int>) -> Self {
        Self(
            values: Self.readable(range),
            problems: { Self.problems($0, range) },
            value: { .milliseconds($0) },
            text: { "\(Int($0 / .milliseconds(1)))" }
        )
    }
}

extension ConfigurationKey.Format where Written == Int {
    private static func problems(_ number: Int, _ range: ClosedRange<Int>) -> [String] {
        range.contains(number) ? [] : ["must be from \(range.lowerBound) to \(range.upperBound), not \(number)"]
    }

    private static func readable(_ range: ClosedRange<Int>) -> String {
        "\(self.readable(range.lowerBound)) to \(self.readable(range.upperBound))"
    }

    /// A number with thousands separators, or in whole MiB or GiB.
    private static func readable(_ number: Int) -> String {
        for (name, size) in [("GiB", 1 << 30), ("MiB", 1 << 20)] where number >= size && number % size == 0 {
            return "\(number / size) \(name)"
        }
        let digits = Array("\(number)")
        return digits.indices.reduce(into: "") { text, index in
            if index > 0, (digits.count - index) % 3 == 0 { text.append(",") }
            text.append(digits[index])
        }
    }
}

extension ConfigurationKey.Format where Written == String, Value == String {
    /// A text that may be converted once it has been checked.
    static func text(
        _ values: String,
        problem: @escaping @Sendable (String) -> String? = { _ in nil },
        value: @escaping @Sendable (String) -> String = { $0 }
    ) -> Self {
        Self(values: values, problems: { problem($0).map { [$0] } ?? [] }, value: value, text: { $0 })
    }
}

extension ConfigurationKey.Format where Written == String, Value == String? {
    static var file: Self {
        Self(values: "path", problems: { _ in [] }, value: { .some($0.isEmpty ? nil : $0) }, text: { $0 ?? "" })
    }
}

extension ConfigurationKey.Format where Written == String, Value: RawRepresentable<String> & CaseIterable {
    static var choice: Self {
        Self(
            values: Value.names.map { "`\($0)`" }.joined(separator: ", "),
            problems: { Value.problems($0) },
            value: { Value(rawValue: $0) },
            text: { $0.rawValue }
        )
    }
}

extension ConfigurationKey.Format where Written == String {
    /// One of a closed set of names. The empty text means none.
    static func optionalChoice<Choice>() -> Self
    where Value == Choice?, Choice: RawRepresentable<String> & CaseIterable & Sendable {
        Self(
            values: Choice.names.map { "`\($0)`" }.joined(separator: ", "),
            problems: { $0.isEmpty ? [] : Choice.problems($0) },
            value: { .some($0.isEmpty ? nil : Choice(rawValue: $0)) },
            text: { $0?.rawValue ?? "" }
        )
    }

    /// A secret, from a variable or from the file that another variable names.
    static func secret<Content: Sendable>(
        _ values: String,
        problem: @escaping @Sendable (String) -> String?,
        value: @escaping @Sendable (String) -> Content?,
        text: @escaping @Sendable (Content) -> String
    ) -> Self where Value == Redacted<Content>? {
        Self(
            values: values,
            isSecret: true,
            problems: { problem($0).map { [$0] } ?? [] },
            value: { .some(value($0).map { Redacted($0) }) },
            text: { $0.map { text($0.revealed) } ?? "" }
        )
    }
}

extension RawRepresentable<String> where Self: CaseIterable {
    fileprivate static var names: [String] { Self.allCases.map(\.rawValue) }

    fileprivate static func problems(_ text: String) -> [String] {
        if Self(rawValue: text) != nil { return [] }
        return ["must be one of \(Self.names.joined(separator: ", ")), not \"\(text)\""]
    }
}

extension ConfigurationKey.Format where Written == [String], Value == [String] {
    static func hosts(_ values: String, problem: @escaping @Sendable (String) -> String?) -> Self {
        Self(
            values: values,
            problems: { $0.compactMap(problem) },
            value: { $0.map { $0.lowercased() } },
            text: { $0.joined(separator: ",") }
        )
    }
}

extension ConfigurationKey.Format where Written == RatePolicyList, Value == [RatePolicy] {
    static var policies: Self {
        Self(
            values: "one to four policies",
            problems: { _ in [] },
            value: { $0.policies },
            text: { $0.map(\.text).joined(separator: ",") }
        )
    }
}
