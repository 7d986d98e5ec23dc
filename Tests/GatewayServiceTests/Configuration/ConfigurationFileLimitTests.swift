import Testing

@testable import GatewayService

/// Texts that fuzzing found, or that it led to.
@Suite("Hostile configuration files", .timeLimit(.minutes(10)))
struct ConfigurationFileLimitTests {
    @Test(
        "What is missing at the end is told with the last line's number",
        arguments: [("http: [", 1), ("http: [\n", 1), ("http:\n  port: [1,\n", 2), ("a: \"b", 1), ("http: {\r\n", 1)]
    )
    func endOfFile(text: String, line: Int) {
        let problems = Self.problems(text)
        #expect(problems.map(\.place) == [.file("g.yaml", line: line)])
    }

    @Test("Keys made of anchors that multiply are refused before they are compared")
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

    @Test("Sixteen uses of anchors are read, and asterisks that are none are not counted")
    func someAnchors() throws {
        let hosts = Array(repeating: "*h", count: 15).joined(separator: ", ")
        let notes = String(repeating: "# 2*3 * ** *.example *\n", count: 30)
        let text = notes + "dataDir: &h a\nhttp: {host: *h}\nupstream:\n  allowedTokenHosts: [\(hosts)]\n"
        #expect(Self.problems(text).isEmpty)
    }

    @Test("A key of half a megabyte is refused at once, without a hint")
    func giantKey() {
        let key = String(repeating: "k", count: 500_000)
        #expect(Self.problems("? \(key)\n: 1\n").map(\.message) == ["is not known"])
    }

    @Test("Nesting beyond what YAML's reader takes is refused", arguments: ["[", "{a: ", "- ", "? "])
    func deepNesting(opening: String) {
        #expect(!Self.problems(String(repeating: opening, count: 100_000)).isEmpty)
    }

    private static func problems(_ text: String) -> [ConfigurationProblem] {
        ConfigurationFile(name: "g.yaml", text: text).problems
    }
}
