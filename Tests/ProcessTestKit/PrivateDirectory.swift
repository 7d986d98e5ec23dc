import Foundation

/// A directory of one test's files.
package struct PrivateDirectory: Sendable {
    /// The directory's path, without symbolic links.
    package let path: String

    /// Runs a body with a directory that is removed afterwards; in memory, if that is preferred and the system offers it,
    /// a slow disk is no part of what is measured.
    package static func with<Result>(
        prefersMemory: Bool = false,
        _ body: (PrivateDirectory) async throws -> Result
    ) async throws -> Result {
        let memory = "/dev/shm"
        let parent =
            prefersMemory && FileManager.default.isWritableFile(atPath: memory)
            ? URL(filePath: memory)
            : FileManager.default.temporaryDirectory.resolvingSymlinksInPath()
        let directory = PrivateDirectory(path: parent.appending(path: "fcm-gateway-\(UUID())").path)
        try FileManager.default.createDirectory(
            atPath: directory.path,
            withIntermediateDirectories: true,
            attributes: [.posixPermissions: 0o700]
        )
        defer { try? FileManager.default.removeItem(atPath: directory.path) }
        return try await body(directory)
    }

    /// The path of something in here.
    package func path(_ name: String) -> String { "\(self.path)/\(name)" }

    /// Writes a file and returns its path.
    @discardableResult
    package func write(_ content: String, to name: String) throws -> String {
        let path = self.path(name)
        try Data(content.utf8).write(to: URL(filePath: path))
        return path
    }

    /// A file's text without the white space around it.
    package func text(_ name: String) throws -> String {
        try String(contentsOfFile: self.path(name), encoding: .utf8).trimmingCharacters(in: .whitespacesAndNewlines)
    }

    /// Copies a folder in here.
    package func copy(_ name: String, to copy: String) throws -> String {
        try FileManager.default.copyItem(atPath: self.path(name), toPath: self.path(copy))
        return self.path(copy)
    }
}
