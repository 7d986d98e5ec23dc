import Foundation
import Testing

/// Finds the public JSON test suite, which stands next to the project in `shared`.
enum JSONTestSuite {
    /// The folder of its files; nil when it is not there.
    static let folder = Self.find()

    /// The names of its files, sorted.
    static let files: [String] = {
        guard let folder = Self.folder else { return [] }
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
        return names.filter { $0.hasSuffix(".json") }.sorted()
    }()

    /// Reads a file.
    ///
    /// - Parameter name: Its name.
    /// - Returns: Its bytes.
    /// - Throws: When it cannot be read.
    static func bytes(of name: String) throws -> [UInt8] {
        let folder = try #require(Self.folder)
        return Array(try Data(contentsOf: folder.appendingPathComponent(name)))
    }

    private static func find() -> URL? {
        let file = URL(fileURLWithPath: #filePath)
        // A checkout may link to these sources: look from where the link leads, too.
        for start in [file, file.resolvingSymlinksInPath()] {
            var directory = start.deletingLastPathComponent()
            while directory.path != "/" {
                let parent = directory.deletingLastPathComponent()
                let folder = parent.appendingPathComponent("shared/json-test-suite/test_parsing")
                if Self.exists(directory.appendingPathComponent("Package.swift")), Self.exists(folder) {
                    return folder
                }
                directory = parent
            }
        }
        return nil
    }

    private static func exists(_ url: URL) -> Bool {
        FileManager.default.fileExists(atPath: url.path)
    }
}
