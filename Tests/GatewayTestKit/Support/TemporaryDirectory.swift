import Foundation

/// A directory of one test's files.
package struct TemporaryDirectory {
    package let path: String

    /// Runs a body with a directory that is removed afterwards.
    package static func with<Result>(_ body: (TemporaryDirectory) async throws -> Result) async throws -> Result {
        let directory = TemporaryDirectory(
            path: FileManager.default.temporaryDirectory.appending(path: "fcm-gateway-\(UUID())").path
        )
        try FileManager.default.createDirectory(atPath: directory.path, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: directory.path) }
        return try await body(directory)
    }

    package func file(_ name: String, _ content: String) throws -> String {
        let path = "\(self.path)/\(name)"
        try Data(content.utf8).write(to: URL(filePath: path))
        return path
    }
}
