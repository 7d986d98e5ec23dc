import Foundation
import NIOCore

/// The conformance vectors in `Tests/Vectors`.
enum VectorFile {
    /// The names of the files, without their ending.
    static let names = ["conditions", "device-groups", "plaintext", "responses", "translate", "validate"]

    /// The vectors of one file, with markers expanded, after a check of the file's own heading.
    static func read(_ name: String) throws -> [VectorJSON] {
        let file = try self.directory().appending(path: name + ".json")
        var heading = try VectorJSON(parsing: ByteBuffer(bytes: try Data(contentsOf: file))).members()
        let format = try heading.take("format").text()
        let version = try heading.take("version").integer()
        let count = try heading.take("count").integer()
        let vectors = try heading.take("vectors").elements().map { try $0.expanded() }
        try heading.finish()
        guard format == "fcm-vectors/\(name)", version == 1 else {
            throw VectorProblem("\(name) has the format \(format), version \(version)")
        }
        guard vectors.count == count else {
            throw VectorProblem("\(name) holds \(vectors.count) vectors, not \(count)")
        }
        return vectors
    }

    /// The first directory above this file that is the project's root.
    private static func directory() throws -> URL {
        var root = URL(filePath: #filePath)
        while root.path != "/" {
            root.deleteLastPathComponent()
            let vectors = root.appending(path: "Tests/Vectors")
            let manifest = root.appending(path: "Package.swift")
            let files = FileManager.default
            if files.fileExists(atPath: manifest.path), files.fileExists(atPath: vectors.path) { return vectors }
        }
        throw VectorProblem("there is no Tests/Vectors above \(#filePath)")
    }
}
