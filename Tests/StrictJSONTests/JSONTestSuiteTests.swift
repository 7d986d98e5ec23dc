import Foundation
import StrictJSON
import Testing

@Suite("The public JSON test suite", .enabled(if: JSONTestSuite.folder != nil, "the suite is not next to the project"))
struct JSONTestSuiteTests {
    /// The files that must be accepted by RFC 8259, but hold an object with two members of one name.
    private static let filesWithDuplicates = [
        "y_object_duplicated_key.json", "y_object_duplicated_key_and_value.json",
    ]

    @Test("The suite is complete")
    func isWhole() {
        let counts = Dictionary(grouping: JSONTestSuite.files) { $0.prefix(2) }.mapValues(\.count)
        #expect(counts == ["y_": 95, "n_": 188, "i_": 35])
    }

    @Test("Well-formed texts are accepted, those with duplicate names refused", arguments: Self.files("y_"))
    func acceptsWellFormed(file: String) throws {
        let refusal = JSONParsing.refusal(try JSONTestSuite.bytes(of: file))
        #expect(refusal?.code == (Self.filesWithDuplicates.contains(file) ? .duplicateKey : nil))
    }

    @Test("Malformed texts are refused", arguments: Self.files("n_"))
    func refusesMalformed(file: String) throws {
        let bytes = try JSONTestSuite.bytes(of: file)
        let refusal = try #require(JSONParsing.refusal(bytes))
        // Two files nest so deep that they reach the depth limit first.
        let isDeep = file == "n_structure_100000_opening_arrays.json" || file == "n_structure_open_array_object.json"
        #expect(refusal.code == (isDeep ? .tooDeep : .malformed))
        #expect((0...bytes.count).contains(refusal.offset))
    }

    @Test("Texts the standard leaves open are read without a crash", arguments: Self.files("i_"))
    func survivesOpenCases(file: String) throws {
        let bytes = try JSONTestSuite.bytes(of: file)
        // Numbers are kept as text, so any size is accepted. All other files break one of our rules.
        let refusal = JSONParsing.refusal(bytes)
        #expect((refusal == nil) == file.hasPrefix("i_number_"))
        #expect((0...bytes.count).contains(refusal?.offset ?? 0))
    }

    private static func files(_ prefix: String) -> [String] {
        JSONTestSuite.files.filter { $0.hasPrefix(prefix) }
    }
}

/// Finds the public JSON test suite in the folder `shared` next to the project.
enum JSONTestSuite {
    /// The folder of its files; nil when it is not there.
    static let folder = Self.find()

    static let files: [String] = {
        guard let folder = Self.folder else { return [] }
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
        return names.filter { $0.hasSuffix(".json") }.sorted()
    }()

    static func bytes(of name: String) throws -> [UInt8] {
        let folder = try #require(Self.folder)
        return Array(try Data(contentsOf: folder.appendingPathComponent(name)))
    }

    private static func find() -> URL? {
        let file = URL(fileURLWithPath: #filePath)
        // The sources may be a symbolic link, so the link's target is searched too.
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
