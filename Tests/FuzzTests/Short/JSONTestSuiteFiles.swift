import Foundation

/// The public JSON test suite, which is read where it lies next to the project.
enum JSONTestSuiteFiles {
    private static let folder = URL(filePath: #filePath)
        .appending(path: "../../../../../shared/json-test-suite/test_parsing").standardizedFileURL

    /// Whether it is there.
    static var areThere: Bool { FileManager.default.fileExists(atPath: Self.folder.path()) }

    /// Its texts.
    static func all() throws -> [(name: String, bytes: [UInt8])] {
        try FileManager.default.contentsOfDirectory(atPath: Self.folder.path()).sorted()
            .map { ($0, Array(try Data(contentsOf: Self.folder.appending(path: $0)))) }
    }
}
