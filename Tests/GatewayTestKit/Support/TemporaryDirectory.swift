import Foundation

/// A directory of one test's files.
package struct TemporaryDirectory: Sendable {
    package let path: String

    /// The directory of all of them, which is removed when the process exits: some tests end before their stores close.
    private static let parent: URL = {
        atexit { try? FileManager.default.removeItem(at: TemporaryDirectory.parent) }
        return FileManager.default.temporaryDirectory.appending(path: "fcm-gateway-tests-\(getpid())")
    }()

    package init() throws {
        self.path = Self.parent.appending(path: "\(UUID())").path
        try FileManager.default.createDirectory(atPath: self.path, withIntermediateDirectories: true)
    }

    /// Runs a body with a directory that is removed afterwards.
    package static func with<Result>(_ body: (TemporaryDirectory) async throws -> Result) async throws -> Result {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        return try await body(directory)
    }

    package func remove() { try? FileManager.default.removeItem(atPath: self.path) }

    package func file(_ name: String, _ content: String) throws -> String {
        let path = "\(self.path)/\(name)"
        try Data(content.utf8).write(to: URL(filePath: path))
        return path
    }
}
