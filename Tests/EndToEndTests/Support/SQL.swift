import Foundation
import ProcessTestKit

/// Changes a store behind the gateway's back, as somebody with the file could.
enum SQL {
    private static let shell = Program.named("sqlite3")
    private static let python = Program.named("python3")
    private static let script = """
        import sqlite3, sys
        connection = sqlite3.connect(sys.argv[1], timeout=60)
        connection.executescript(sys.argv[2])
        for row in connection.execute(sys.argv[3]) if sys.argv[3] else []:
            print("|".join(map(str, row)))
        connection.commit()
        connection.close()
        """

    /// Whether there is a program to change stores with.
    static var isAvailable: Bool { Self.shell != nil || Self.python != nil }

    /// The statement was not executed.
    struct Failed: Error {
        let message: String
    }

    /// Executes statements.
    static func change(_ path: String, _ statements: String) async throws {
        _ = try await self.change(path, statements, thenRead: "")
    }

    /// Executes a query, and returns its rows, columns separated by `|`.
    static func read(_ path: String, _ query: String) async throws -> [String] {
        try await self.change(path, "", thenRead: query)
    }

    /// Executes statements and then a query, and returns its rows, columns separated by `|`.
    static func change(_ path: String, _ statements: String, thenRead query: String) async throws -> [String] {
        let outcome: Program.Outcome
        if let shell = self.shell {
            let options = ["-batch", "-bail", "-cmd", ".timeout 60000"]
            outcome = try await Program.run(shell, options + [path, "\(statements);\(query)"])
        } else if let python = self.python {
            outcome = try await Program.run(python, ["-c", self.script, path, statements, query])
        } else {
            throw Failed(message: "neither sqlite3 nor python3 is installed")
        }
        guard outcome.end == .code(0), outcome.errors.isEmpty else { throw Failed(message: outcome.errors) }
        return outcome.output.split(separator: "\n").map(String.init)
    }
}
