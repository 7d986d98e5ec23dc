import Foundation

/// Reads the same inputs repeatedly to find leaks of memory.
enum Repetition {
    /// Returns the growth of the memory in use between the first two rounds and the last one, in bytes.
    ///
    /// - Throws: a finding, or that the folder can't be read.
    static func growth(of target: FuzzTarget, inputs folder: String, rounds: Int) throws -> Int {
        let files = try FileManager.default.contentsOfDirectory(atPath: folder).sorted()
        let inputs = try files.map { Array(try Data(contentsOf: URL(fileURLWithPath: "\(folder)/\($0)"))) }
        // Two rounds create everything that is created once, such as tables.
        for _ in 0..<2 { try Self.read(inputs, target) }
        let before = try Self.bytesInUse
        for _ in 0..<rounds { try Self.read(inputs, target) }
        return try Self.bytesInUse - before
    }

    private static func read(_ inputs: [[UInt8]], _ target: FuzzTarget) throws {
        for input in inputs { try target.check(input) }
    }

    /// The process's resident memory (proc(5), statm).
    private static var bytesInUse: Int {
        get throws {
            let text = try String(contentsOfFile: "/proc/self/statm", encoding: .ascii)
            let pages = text.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
            return pages * Int(sysconf(Int32(_SC_PAGESIZE)))
        }
    }
}
