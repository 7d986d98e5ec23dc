import Foundation
import Testing

@testable import GatewayStorage

/// The schema's history: released steps never change, and which releases may serve a schema (decision 0058).
struct PostgreSQLHistoryTests {
    private static let names = PostgreSQLSchema.steps.map(\.name)

    @Test("A step equals its released copy; a missing copy is written, to be committed", arguments: Self.names)
    func released(name: String) throws {
        let step = try #require(PostgreSQLSchema.steps.first { $0.name == name })
        let copy = SchemaFile.url(name)
        guard FileManager.default.fileExists(atPath: copy.path) else {
            try step.script.write(to: copy, atomically: true, encoding: .utf8)
            Issue.record("Tests/Schemas/\(name).sql was missing and has been written; commit it")
            return
        }
        let isSame = try SchemaFile.text(name) == step.script
        #expect(isSame, "What has been released is never edited; for what has not, see Tests/Schemas/README.md")
    }

    @Test("No released step has been removed")
    func complete() throws {
        let files = try FileManager.default.contentsOfDirectory(atPath: SchemaFile.folder.path)
        let released = files.filter { $0.hasSuffix(".sql") && $0 != "later.sql" }.map { String($0.dropLast(4)) }
        #expect(Set(released).isSubset(of: Self.names))
    }

    @Test("Steps are in order, and each admits itself or one before it", arguments: PostgreSQLSchema.steps.indices)
    func order(index: Int) {
        let step = PostgreSQLSchema.steps[index]
        #expect(step.name == "v\(100 + index)")
        #expect(Self.names.prefix(index + 1).contains(step.admits))
    }

    /// A schema that a release ending with `v101` meets: its steps, each with the step that it admits after the colon.
    struct Schema: Sendable, CustomTestStringConvertible {
        let applied: String
        let standing: PostgreSQLSchema.Standing

        init(_ applied: String, _ standing: PostgreSQLSchema.Standing) {
            (self.applied, self.standing) = (applied, standing)
        }

        var testDescription: String { "'\(self.applied)' is \(self.standing)" }

        var state: PostgreSQLSchema.State {
            let steps = self.applied.split(separator: " ").map { $0.split(separator: ":").map(String.init) }
            return PostgreSQLSchema.State(applied: steps.map { .init(name: $0[0], admits: $0[1]) })
        }
    }

    @Test(
        "A release serves its own schema, and a later one if all later steps admit it",
        arguments: [
            Schema("", .outdated), Schema("v100:v100", .outdated), Schema("v100:v100 v101:v100", .current),
            Schema("v100:v100 v101:v100 v102:v101", .admitting), Schema("v100:v100 v101:v100 v102:v100", .admitting),
            Schema("v100:v100 v101:v100 v102:v101 v103:v101", .admitting),
            Schema("v100:v100 v101:v100 v102:v102", .superseded),
            Schema("v100:v100 v101:v100 v102:v101 v103:v102", .superseded),
            Schema("v100:v100 v101:v100 v102:v102 v103:v100", .superseded),
            // Another gateway's history.
            Schema("v100:v100 v102:v100", .superseded), Schema("v100:v100 v100a:v100 v101:v100", .superseded),
            Schema("x:a", .superseded),
            // A build from before the first release.
            Schema("v001:v001", .unreleased), Schema("v001:v001 v100:v100", .unreleased),
        ]
    )
    func standings(schema: Schema) {
        #expect(schema.state.standing(to: ["v100", "v101"]) == schema.standing)
    }
}
