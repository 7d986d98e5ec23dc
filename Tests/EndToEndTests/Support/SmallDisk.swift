import Foundation
import ProcessTestKit

#if canImport(Glibc)
import Glibc
#endif

/// A file system of two mebibytes in memory.
struct SmallDisk: Sendable {
    let path: String

    /// True if this process may mount.
    static let isAvailable: Bool = {
        let files = FileManager.default
        let path = files.temporaryDirectory.appending(path: "fcm-gateway-mount-\(UUID())").path
        defer { try? files.removeItem(atPath: path) }
        guard (try? files.createDirectory(atPath: path, withIntermediateDirectories: false)) != nil else {
            return false
        }
        return Self.mount(at: path) && Self.unmount(path)
    }()

    /// It could not be mounted or filled.
    struct Failed: Error {}

    /// Runs a body with a disk that is unmounted afterwards.
    static func with<Result>(_ body: (SmallDisk) async throws -> Result) async throws -> Result {
        try await PrivateDirectory.with { directory in
            let disk = SmallDisk(path: directory.path("disk"))
            try FileManager.default.createDirectory(atPath: disk.path, withIntermediateDirectories: false)
            guard self.mount(at: disk.path) else { throw Failed() }
            defer { _ = self.unmount(disk.path) }
            return try await body(disk)
        }
    }

    /// Writes until nothing more fits.
    func fill() throws {
        let path = "\(self.path)/ballast"
        guard FileManager.default.createFile(atPath: path, contents: nil), let file = FileHandle(forWritingAtPath: path)
        else { throw Failed() }
        defer { try? file.close() }
        let block = Data(count: 4_096)
        for _ in 1...513 {
            do {
                try file.write(contentsOf: block)
            } catch {
                return
            }
        }
        throw Failed()
    }

    func free() throws {
        try FileManager.default.removeItem(atPath: "\(self.path)/ballast")
    }

    #if canImport(Glibc)
    private static func mount(at path: String) -> Bool {
        unsafe Glibc.mount("tmpfs", path, "tmpfs", 0, "size=2m,mode=700") == 0
    }

    private static func unmount(_ path: String) -> Bool {
        unsafe umount(path) == 0
    }
    #else
    private static func mount(at path: String) -> Bool { false }

    private static func unmount(_ path: String) -> Bool { false }
    #endif
}
