import Foundation

/// The inputs that are committed.
enum Corpus {
    /// The most inputs for one target.
    static let maxFiles = 300
    /// The most bytes of all inputs together.
    static let maxBytes = 1 << 20

    private static let folder = URL(filePath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().appending(path: "Corpus")

    /// The inputs of a target, by the names of their files.
    static func inputs(of target: FuzzTarget) throws -> [(name: String, bytes: [UInt8])] {
        let folder = Self.folder.appending(path: target.name)
        return try FileManager.default.contentsOfDirectory(atPath: folder.path()).sorted()
            .map { ($0, Array(try Data(contentsOf: folder.appending(path: $0)))) }
    }

    /// The names of all folders.
    static var names: [String] {
        get throws { try FileManager.default.contentsOfDirectory(atPath: Self.folder.path()).sorted() }
    }
}

/// The public JSON test suite, in a folder next to the project.
enum JSONTestSuiteFiles {
    private static let folder = URL(filePath: #filePath)
        .appending(path: "../../../../../shared/json-test-suite/test_parsing").standardizedFileURL

    /// True if the folder exists.
    static var areThere: Bool { FileManager.default.fileExists(atPath: Self.folder.path()) }

    /// The texts of the suite.
    static func all() throws -> [(name: String, bytes: [UInt8])] {
        try FileManager.default.contentsOfDirectory(atPath: Self.folder.path()).sorted()
            .map { ($0, Array(try Data(contentsOf: Self.folder.appending(path: $0)))) }
    }
}
