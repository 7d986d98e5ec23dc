import Foundation
import GatewayTestKit

/// Runs a body with the path of an empty directory that is removed afterwards.
func withTemporaryDirectory(_ body: (String) async throws -> Void) async throws {
    try await TemporaryDirectory.with { try await body($0.path) }
}

/// Runs a body with the path of a store that does not exist yet, in a directory that is removed afterwards.
func withStorePath(_ body: (String) async throws -> Void) async throws {
    try await withTemporaryDirectory { try await body($0 + "/gateway.db") }
}

func permissions(_ path: String) throws -> Int? {
    (try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? NSNumber)?.intValue
}

/// A directory's files by name, with their contents.
func contents(of directory: String) throws -> [String: Data] {
    var files: [String: Data] = [:]
    for name in try FileManager.default.contentsOfDirectory(atPath: directory) {
        files[name] = try Data(contentsOf: URL(fileURLWithPath: directory + "/" + name))
    }
    return files
}
