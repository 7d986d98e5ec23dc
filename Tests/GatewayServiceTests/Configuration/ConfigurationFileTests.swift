import GatewayTestKit
import Testing

@testable import GatewayService

struct ConfigurationFileTests {
    @Test(
        "Invalid content is refused with file, line and key",
        arguments: [
            ("http:\n  prot: 8080", ["g.yaml:2: http.prot: is not known; did you mean http.port?"]),
            ("nothing-like-it: 1", ["g.yaml:1: nothing-like-it: is not known"]),
            (
                "http:\n  tls:\n    clientCAFile: a",
                ["g.yaml:3: http.tls.clientCAFile: is not known; did you mean http.tls.clientCaFile?"]
            ),
            ("http:\n\n  port: '8080'", [#"g.yaml:3: http.port: expected a whole number, but found the text "8080""#]),
            (
                "http:\n  port: 0x1F90",
                [
                    "g.yaml:2: http.port: expected a whole number, but found 0x1F90; "
                        + "put text in quotes, write numbers in plain decimal"
                ]
            ),
            ("http:\n  port: [1]", ["g.yaml:2: http.port: expected a whole number, but found a list"]),
            ("http:\n  port:", ["g.yaml:2: http.port: expected a whole number, but there is no value"]),
            ("http: 8080", ["g.yaml:1: http: expected keys and values"]),
            ("- a", ["g.yaml:1: expected keys and values"]),
            ("http:\n  [a]: 1", ["g.yaml:2: http: keys must be plain text"]),
            (
                "log:\n  level: off",
                ["g.yaml:2: log.level: expected text, but YAML reads off as true or false; put text in quotes"]
            ),
            ("dataDir: {a: b}", ["g.yaml:1: dataDir: expected text, but found keys and values"]),
            (
                "upstream:\n  allowedTokenHosts: a.b",
                [#"g.yaml:2: upstream.allowedTokenHosts: expected a list of strings, but found the text "a.b""#]
            ),
            (
                "http:\n  port: 1\n  host: a\n  port: 2",
                ["g.yaml:2: port: appears more than once in one place; this is the first"]
            ),
            (
                "masterKey: c2VjcmV0\nadmin:\n  token: abc",
                [
                    "g.yaml:1: masterKey: secrets do not belong in this file; "
                        + "set GATEWAY_MASTER_KEY or GATEWAY_MASTER_KEY_FILE",
                    "g.yaml:3: admin.token: secrets do not belong in this file; "
                        + "set GATEWAY_ADMIN_TOKEN or GATEWAY_ADMIN_TOKEN_FILE",
                ]
            ),
            (
                "limits:\n  defaults:\n    topic:\n      - 1/1s:1\n      - {rate: 1, per_s: 1}",
                [
                    "g.yaml:5: limits.defaults.topic: policy 2: expected RATE/PERIOD:BURST, such as 180/60s:60"
                ]
            ),
            (
                "limits:\n  defaults:\n    topic: [0/1s:1]",
                ["g.yaml:3: limits.defaults.topic: policy 1: the rate must be from 1 to 1000000000, not 0"]
            ),
            (
                "limits:\n  defaults:\n    topic: [a/1s:1]",
                ["g.yaml:3: limits.defaults.topic: policy 1: expected RATE/PERIOD:BURST, such as 180/60s:60"]
            ),
            ("limits:\n  defaults:\n    topic: []", ["g.yaml:3: limits.defaults.topic: must hold one to 4 policies"]),
            ("a: 1\n---\nb: 2", ["g.yaml:2: but found another document"]),
        ]
    )
    func problems(yaml: String, expected: [String]) {
        let file = ConfigurationFile(YAMLSource(name: "g.yaml", text: yaml))
        #expect(file.problems.map(\.description) == expected)
    }

    @Test("Broken YAML is refused with its line")
    func brokenYAML() throws {
        let file = ConfigurationFile(YAMLSource(name: "g.yaml", text: "http:\n  port: 1\n \t host: ["))
        let problem = try #require(file.problems.first)
        #expect(problem.description.hasPrefix("g.yaml:3: "))
    }

    @Test("All problems are found, not only the first")
    func allProblems() {
        let file = ConfigurationFile(YAMLSource(name: "g.yaml", text: "a1: 1\nb2: 2\nhttp:\n  port: x\n  host: 1"))
        #expect(file.problems.count == 4)
    }

    @Test(
        "A file without content, or with an empty section, sets nothing",
        arguments: ["", "# nothing\n", "http:\nlog:\n"]
    )
    func empty(yaml: String) {
        let file = ConfigurationFile(YAMLSource(name: "g.yaml", text: yaml))
        #expect(file.problems.isEmpty)
        #expect(file.values.isEmpty)
    }

    @Test("A file that can't be read or is too large is refused by name")
    func unreadable() async throws {
        try await TemporaryDirectory.with { directory in
            func file(_ path: String) -> ConfigurationFile {
                ConfigurationFile(YAMLSource(path: path, maxBytes: ConfigurationFile.maxBytes))
            }
            let missing = file("\(directory.path)/none.yaml")
            let none = "\(directory.path)/none.yaml: cannot be read: No such file or directory"
            #expect(missing.problems.map(\.description) == [none])
            let large = try directory.file("large.yaml", String(repeating: "#", count: ConfigurationFile.maxBytes + 1))
            #expect(file(large).problems.map(\.message) == ["is larger than 1048576 bytes"])
        }
    }
}

/// Files that fuzzing found, or variants of them.
@Suite("Hostile configuration files", .timeLimit(.minutes(10)))
struct ConfigurationFileLimitTests {
    @Test(
        "Incomplete YAML is reported with the number of the last line",
        arguments: [("http: [", 1), ("http: [\n", 1), ("http:\n  port: [1,\n", 2), ("a: \"b", 1), ("http: {\r\n", 1)]
    )
    func endOfFile(text: String, line: Int) {
        let problems = Self.problems(text)
        #expect(problems.map(\.source) == [.file("g.yaml", line: line)])
    }

    @Test("Keys made of anchors that multiply are refused")
    func multiplyingAnchors() {
        var text = "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
        for (name, next) in zip("abcdefgh", "bcdefghi") {
            text += "\(next): &\(next) [" + Array(repeating: "*\(name)", count: 10).joined(separator: ",") + "]\n"
        }
        text += "? *i\n: x\n"
        #expect(
            Self.problems(text).map(\.description)
                == ["g.yaml:3: holds more than 16 uses of anchors (such as *name)"]
        )
    }

    @Test("Sixteen uses of anchors are accepted, and other asterisks are not counted")
    func someAnchors() throws {
        let hosts = Array(repeating: "*h", count: 15).joined(separator: ", ")
        let notes = String(repeating: "# 2*3 * ** *.example *\n", count: 30)
        let text = notes + "dataDir: &h a\nhttp: {host: *h}\nupstream:\n  allowedTokenHosts: [\(hosts)]\n"
        #expect(Self.problems(text).isEmpty)
    }

    @Test("A key of half a megabyte is refused without a hint")
    func giantKey() {
        let key = String(repeating: "k", count: 500_000)
        #expect(Self.problems("? \(key)\n: 1\n").map(\.message) == ["is not known"])
    }

    @Test("Nesting deeper than the YAML parser supports is refused", arguments: ["[", "{a: ", "- ", "? "])
    func deepNesting(opening: String) {
        #expect(!Self.problems(String(repeating: opening, count: 100_000)).isEmpty)
    }

    private static func problems(_ text: String) -> [ConfigurationProblem] {
        ConfigurationFile(YAMLSource(name: "g.yaml", text: text)).problems
    }
}
