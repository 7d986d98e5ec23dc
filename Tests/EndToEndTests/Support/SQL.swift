import Foundation
import ProcessTestKit

/// Reads and changes a store without the gateway, as a person with the file could.
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

    /// True if a program for SQLite is installed.
    static var isAvailable: Bool { Self.shell != nil || Self.python != nil }

    struct Failed: Error {
        let message: String
    }

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

/// Locks a store against writes, as a stuck backup tool does.
enum StoreHold {
    private static let script = """
        import sqlite3, sys, time
        connection = sqlite3.connect(sys.argv[1], timeout=30, isolation_level=None)
        connection.execute("BEGIN EXCLUSIVE")
        print("held", flush=True)
        time.sleep(600)
        """

    private static let python = Program.named("python3")

    static var isAvailable: Bool { Self.python != nil }

    /// Runs a body while the store in a data directory is locked.
    static func on<Result>(_ dataDirectory: String, _ body: () async throws -> Result) async throws -> Result {
        guard let python = self.python else { throw SQL.Failed(message: "python3 is not installed") }
        let arguments = ["-c", self.script, "\(dataDirectory)/gateway.sqlite"]
        return try await ChildProcess.with(python, arguments) { child in
            _ = try await child.output.first { $0.contains("held") ? true : nil }
            return try await body()
        }
    }
}
