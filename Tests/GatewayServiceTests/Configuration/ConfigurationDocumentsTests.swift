import Foundation
import GatewayTestKit
import Testing

@testable import GatewayService

/// The configuration page and the example file agree with the table of keys.
struct ConfigurationDocumentsTests {
    private static func text(_ path: String) throws -> String {
        try String(contentsOf: URL.inRepository(path), encoding: .utf8)
    }

    /// The rows that the page must have.
    private static var rows: [String] {
        ["| key | what it sets | values | default | change |", "|---|---|---|---|---|"]
            + ConfigurationTable.keys.map { key in
                let value = key.path == "eventLoops" ? "one for each core" : key.shown(GatewayConfiguration())
                let shown = value.isEmpty ? "none" : key.path == "eventLoops" ? value : "`\(value)`"
                let change = key.isReloadable ? "reload" : "start"
                return "| `\(key.path)` | \(key.doc) | \(key.values) | \(shown) | \(change) |"
            }
    }

    @Test("The page has exactly the table's row for each key")
    func page() throws {
        let page = try Self.text("docs/operations/configuration.md")
        let section = try #require(
            page.components(separatedBy: "## Every key\n").last?.components(separatedBy: "\n## ").first
        )
        let written = section.split(separator: "\n").filter { $0.hasPrefix("|") }.map(String.init)
        #expect(written == Self.rows, "the page should have:\n\(Self.rows.joined(separator: "\n"))")
    }

    @Test("The page's reload section lists exactly the keys that a reload applies")
    func reloads() throws {
        let page = try Self.text("docs/operations/configuration.md")
        let section = try #require(
            page.components(separatedBy: "## Reload\n").last?.components(separatedBy: "\n## ").first
        )
        let patterns = section.split(separator: "\n").filter { $0.hasPrefix("| `") }
            .flatMap { $0.split(separator: "|")[0].matches(of: #/`([^`]+)`/#).map { String($0.1) } }
        for key in ConfigurationTable.keys {
            let isNamed = patterns.contains {
                $0 == key.path || $0.hasSuffix("*") && key.path.hasPrefix($0.dropLast())
            }
            #expect(isNamed == key.isReloadable, "\(key.path)")
        }
    }

    @Test("The example has every key that a file may hold, with its default if it has one")
    func example() throws {
        let text = try Self.text("deploy/gateway.example.yaml")
        let example = ConfigurationFile(YAMLSource(name: "example", text: text))
        let input = ConfigurationInput(file: example, environment: [:])
        for row in input.describe() {
            #expect(row.value == row.key.shown(GatewayConfiguration()), "\(row.key.path)")
        }
        // Keys without a default are commented out.
        let whole = text.replacing(#/(?m)^( *)# ( *[a-zA-Z]+:( .*)?)$/#) { "\($0.1)\($0.2)" }
        let file = ConfigurationFile(YAMLSource(name: "example", text: whole))
        #expect(file.problems.isEmpty)
        let expected = ConfigurationTable.keys.filter { !$0.isSecret }.map(\.path)
        #expect(Set(file.lines.keys) == Set(expected))
    }
}
