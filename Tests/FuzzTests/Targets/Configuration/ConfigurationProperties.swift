@testable import GatewayService

/// Properties of every text in the place of a configuration file.
enum ConfigurationProperties {
    static func check(_ input: [UInt8]) throws(FuzzFinding) {
        guard let text = String(validating: input, as: UTF8.self) else { return }
        let file = ConfigurationFile(YAMLSource(name: "f", text: text))
        let lineCount = Self.lineCount(of: text)
        for problem in file.problems {
            try Self.check(problem, lineCount: lineCount)
        }
        for line in file.lines.values {
            try FuzzFinding.require((1...lineCount).contains(line), "a key in line \(line) of \(lineCount)")
        }
        // Reading the values takes most of the time, so only one in eight files with problems is read.
        guard file.problems.isEmpty || input.count % 8 == 0 else { return }
        let configuration = ConfigurationInput(file: file, environment: [:])
        do {
            _ = try configuration.configuration()
            try FuzzFinding.require(file.problems.isEmpty, "accepted with problems")
        } catch let problems as ConfigurationProblems {
            for problem in problems.problems {
                try FuzzFinding.require(!problem.description.isEmpty, "a problem without words")
            }
            try FuzzFinding.require(
                problems.problems.starts(with: file.problems),
                "the file's problems are not told: \(problems)"
            )
        } catch let finding as FuzzFinding {
            throw finding
        } catch {
            throw FuzzFinding("\(error)")
        }
        guard file.problems.isEmpty else { return }
        let rows = configuration.describe()
        try FuzzFinding.requireEqual(rows.count, ConfigurationTable.keys.count, "the rows that are shown")
    }

    /// The number of lines of a text, without an empty one after the last line break.
    private static func lineCount(of text: String) -> Int {
        var lines = 1
        var isFresh = true
        var previous: Unicode.Scalar = " "
        for scalar in text.unicodeScalars {
            if scalar == "\n", previous == "\r" {
                previous = scalar
                continue
            }
            if "\n\r\u{85}\u{2028}\u{2029}".unicodeScalars.contains(scalar) {
                lines += 1
                isFresh = true
            } else {
                isFresh = false
            }
            previous = scalar
        }
        return isFresh && lines > 1 ? lines - 1 : lines
    }

    private static func check(_ problem: ConfigurationProblem, lineCount: Int) throws(FuzzFinding) {
        try FuzzFinding.require(!problem.message.isEmpty, "a problem without words")
        guard case .file("f", let line) = problem.source else { throw FuzzFinding("a problem of nowhere: \(problem)") }
        // Bytes that YAML forbids are found before the text is split into lines.
        guard let line else {
            try FuzzFinding.require(
                problem.message.contains("control characters"),
                "a problem without a line: \(problem)"
            )
            return
        }
        try FuzzFinding.require((1...lineCount).contains(line), "a problem in line \(line) of \(lineCount)")
    }
}
