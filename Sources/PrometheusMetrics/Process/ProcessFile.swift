#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

#if os(Linux)
/// Reads the small files and folders of `/proc`.
enum ProcessFile {
    /// More than any file read here holds, even on machines with hundreds of processors.
    private static let maximumBytes = 1 << 20

    /// Reads a whole file; nil if it cannot be read.
    static func text(of path: String) -> String? {
        // POSIX takes the path as a pointer, valid during the call.
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        // These files have no size beforehand: they are read until there is nothing more.
        var chunk = [UInt8](repeating: 0, count: 16_384)
        while bytes.count < Self.maximumBytes {
            let count = unsafe chunk.withUnsafeMutableBytes { unsafe read(descriptor, $0.baseAddress, $0.count) }
            if count < 0 {
                guard errno == EINTR else { return nil }
                continue
            }
            guard count > 0 else { break }
            bytes.append(contentsOf: chunk[..<count])
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Counts a folder's entries; nil if it cannot be read.
    static func entryCount(of path: String) -> Int? {
        // The stream is POSIX' own; it is closed before this function returns.
        guard let folder = unsafe opendir(path) else { return nil }
        defer { unsafe closedir(folder) }
        var count = 0
        while let entry = unsafe readdir(folder) {
            // The entries `.` and `..` are not the process's.
            if unsafe entry.pointee.d_name.0 != CChar(UInt8(ascii: ".")) {
                count += 1
            }
        }
        return count
    }
}
#endif
