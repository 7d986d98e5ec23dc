import Configuration

/// Reads one section's values, checks them, and remembers every problem instead of stopping at the first.
///
/// Only required reads are used, because the library's optional and defaulting reads take a malformed value for a
/// missing one. A value that cannot be used leaves its property at the default, and `finish()` then throws.
package struct SectionReader {
    /// Why a secret cannot be used; never holds the secret.
    package struct Invalid: Error {
        /// What is wrong.
        package let message: String

        /// States what is wrong.
        init(_ message: String) {
            self.message = message
        }
    }

    private let reader: ConfigReader
    private let section: String
    private var problems: [ConfigurationProblem] = []

    /// Creates a reader of one section.
    ///
    /// - Parameters:
    ///   - reader: The root reader.
    ///   - section: The path that precedes every name; empty for the root.
    init(_ reader: ConfigReader, section: String) {
        self.reader = reader
        self.section = section
    }

    /// A check for text that must not be empty.
    static func notEmpty(_ text: String) -> String? {
        text.isEmpty ? "must not be empty" : nil
    }

    /// Reads a whole number within a range.
    mutating func wholeNumber(_ name: String, in range: ClosedRange<Int>, into value: inout Int) {
        guard let number = try? self.reader.requiredInt(forKey: self.key(name)) else {
            // The file's types were checked when it was walked, so this text comes from the environment.
            let text = (try? self.reader.requiredString(forKey: self.key(name))) ?? ""
            self.report(name, "\"\(text)\" is not a whole number")
            return
        }
        guard range.contains(number) else {
            self.report(name, "must be from \(range.lowerBound) to \(range.upperBound), not \(number)")
            return
        }
        value = number
    }

    /// Reads a duration in milliseconds within a range.
    mutating func milliseconds(_ name: String, in range: ClosedRange<Int>, into value: inout Duration) {
        var number = value.wholeMilliseconds
        self.wholeNumber(name, in: range, into: &number)
        value = .milliseconds(number)
    }

    /// Reads text; the check answers what is wrong with it, or nil.
    mutating func text(_ name: String, into value: inout String, check: (String) -> String? = { _ in nil }) {
        guard let text = try? self.reader.requiredString(forKey: self.key(name)) else {
            self.report(name, "is not text")
            return
        }
        if let problem = check(text) {
            self.report(name, problem)
        } else {
            value = text
        }
    }

    /// Reads a list of texts, comma-separated in the environment; each is checked.
    mutating func textList(_ name: String, into value: inout [String], check: (String) -> String?) {
        guard let texts = try? self.reader.requiredStringArray(forKey: self.key(name)) else {
            self.report(name, "is not a list of texts")
            return
        }
        // An empty variable is an empty list, not a list of one empty text.
        let elements = texts == [""] ? [] : texts
        let problems = elements.compactMap(check)
        for problem in problems {
            self.report(name, problem)
        }
        if problems.isEmpty {
            value = elements
        }
    }

    /// Reads one of a closed set of names.
    mutating func choice<Choice>(_ name: String, into value: inout Choice)
    where Choice: RawRepresentable<String> & CaseIterable {
        var text = value.rawValue
        self.text(name, into: &text)
        guard let choice = Choice(rawValue: text) else {
            let names = Choice.allCases.map(\.rawValue).joined(separator: ", ")
            self.report(name, "must be one of \(names), not \"\(text)\"")
            return
        }
        value = choice
    }

    /// Reads one of a closed set of names, or none where the text is empty.
    mutating func optionalChoice<Choice>(_ name: String, into value: inout Choice?)
    where Choice: RawRepresentable<String> & CaseIterable {
        var text = ""
        self.text(name, into: &text)
        guard !text.isEmpty, var choice = Choice.allCases.first else { return }
        self.choice(name, into: &choice)
        value = choice
    }

    /// Reads rate policies from their JSON text.
    mutating func policies(_ name: String, into value: inout [RatePolicyConfiguration]) {
        var json = ""
        self.text(name, into: &json)
        let list = RatePolicyList(json: json)
        for problem in list.problems {
            self.report(name, problem.message)
        }
        if list.problems.isEmpty {
            value = list.policies
        }
    }

    /// Reads a secret; nil when it is not set.
    mutating func secret<Value>(
        _ name: String,
        convert: (String) throws(Invalid) -> Value
    ) -> Redacted<Value>? {
        guard let text = try? self.reader.requiredString(forKey: self.key(name), isSecret: true), !text.isEmpty else {
            return nil
        }
        do {
            return Redacted(try convert(text))
        } catch {
            self.report(name, error.message)
            return nil
        }
    }

    /// Records a problem with a value.
    ///
    /// - Parameters:
    ///   - name: The value's name within the section.
    ///   - other: Another value that takes part; the problem is shown there when only that one was set.
    ///   - message: What is wrong.
    mutating func report(_ name: String, or other: String? = nil, _ message: String) {
        self.problems.append(
            ConfigurationProblem(
                place: .unknown,
                key: self.path(name),
                otherKey: other.map { self.path($0) },
                message: message
            )
        )
    }

    /// Runs another section's reading and keeps its problems.
    mutating func collect(_ body: () throws(ConfigurationProblems) -> Void) {
        do {
            try body()
        } catch {
            self.problems += error.problems
        }
    }

    /// Throws what was found.
    func finish() throws(ConfigurationProblems) {
        if !self.problems.isEmpty {
            throw ConfigurationProblems(self.problems)
        }
    }

    private func path(_ name: String) -> String {
        self.section.isEmpty ? name : "\(self.section).\(name)"
    }

    private func key(_ name: String) -> ConfigKey {
        ConfigKey(self.path(name).split(separator: ".").map(String.init))
    }
}
