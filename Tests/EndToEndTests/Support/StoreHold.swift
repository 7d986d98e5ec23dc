import Foundation
import ProcessTestKit

/// Keeps everybody from writing to a store, as a backup tool that went wrong does.
enum StoreHold {
    private static let script = """
        import sqlite3, sys, time
        connection = sqlite3.connect(sys.argv[1], timeout=30, isolation_level=None)
        connection.execute("BEGIN EXCLUSIVE")
        print("held", flush=True)
        time.sleep(600)
        """

    private static let python = Program.named("python3")

    /// Whether there is a program to do it with.
    static var isAvailable: Bool { Self.python != nil }

    /// Runs a body while nobody can write to a store.
    ///
    /// - Parameters:
    ///   - dataDirectory: the gateway's.
    ///   - body: what to do meanwhile.
    /// - Returns: what the body returns.
    /// - Throws: what the body throws.
    static func on<Result>(_ dataDirectory: String, _ body: () async throws -> Result) async throws -> Result {
        guard let python = self.python else { throw SQL.Failed(message: "python3 is not installed") }
        let arguments = ["-c", self.script, "\(dataDirectory)/gateway.sqlite"]
        return try await ChildProcess.with(python, arguments) { child in
            _ = try await child.output.first { $0.contains("held") ? true : nil }
            return try await body()
        }
    }
}
