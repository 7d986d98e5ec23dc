import Foundation
import Testing

@testable import PrometheusMetrics

#if os(Linux)
@Suite("ProcessFile")
struct ProcessFileTests {
    private func withFolder(_ body: (URL) throws -> Void) throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(at: folder) }
        try body(folder)
    }

    @Test("A file is read to its end", arguments: [0, 1, 16_384, 50_000])
    func wholeFile(size: Int) throws {
        try self.withFolder { folder in
            let file = folder.appendingPathComponent("file")
            let text = String((0..<size).map { _ in Character(["a", "b", "c"].randomElement() ?? "d") })
            try Data(text.utf8).write(to: file)
            #expect(ProcessFile.text(of: file.path) == text)
        }
    }

    @Test("A folder's entries are counted", arguments: [0, 1, 300])
    func entries(count: Int) throws {
        try self.withFolder { folder in
            for index in 0..<count {
                try Data().write(to: folder.appendingPathComponent("\(index)"))
            }
            #expect(ProcessFile.entryCount(of: folder.path) == count)
        }
    }

    @Test("What is not there is nil")
    func missing() throws {
        try self.withFolder { folder in
            #expect(ProcessFile.text(of: folder.appendingPathComponent("none").path) == nil)
            #expect(ProcessFile.text(of: folder.path) == nil)
            #expect(ProcessFile.entryCount(of: folder.appendingPathComponent("none").path) == nil)
        }
    }
}
#endif
