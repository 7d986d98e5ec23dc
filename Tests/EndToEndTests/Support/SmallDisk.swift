import Foundation

/// A file system of two mebibytes in memory.
struct SmallDisk: Sendable {
    /// Where it is mounted.
    let path: String

    /// Whether this process may mount.
    static let isAvailable: Bool = {
        guard let mount = Program.named("mount"), let unmount = Program.named("umount") else { return false }
        let files = FileManager.default
        let path = files.temporaryDirectory.appending(path: "fcm-gateway-mount-\(UUID())").path
        defer { try? files.removeItem(atPath: path) }
        guard (try? files.createDirectory(atPath: path, withIntermediateDirectories: false)) != nil else {
            return false
        }
        return Self.succeeds(mount, Self.arguments(path)) && Self.succeeds(unmount, [path])
    }()

    /// It could not be mounted or filled.
    struct Failed: Error {}

    /// Runs a body with a disk that is unmounted afterwards.
    static func with<Result>(_ body: (SmallDisk) async throws -> Result) async throws -> Result {
        guard let mount = Program.named("mount"), let unmount = Program.named("umount") else { throw Failed() }
        return try await PrivateDirectory.with { directory in
            let disk = SmallDisk(path: directory.path("disk"))
            try FileManager.default.createDirectory(atPath: disk.path, withIntermediateDirectories: false)
            guard self.succeeds(mount, self.arguments(disk.path)) else { throw Failed() }
            defer { _ = self.succeeds(unmount, [disk.path]) }
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
        for _ in 1...512 {
            do {
                try file.write(contentsOf: block)
            } catch {
                return
            }
        }
        throw Failed()
    }

    /// Makes room again.
    func free() throws {
        try FileManager.default.removeItem(atPath: "\(self.path)/ballast")
    }

    private static func arguments(_ path: String) -> [String] {
        ["-t", "tmpfs", "-o", "size=2m,mode=700", "tmpfs", path]
    }

    private static func succeeds(_ program: URL, _ arguments: [String]) -> Bool {
        let process = Process()
        process.executableURL = program
        process.arguments = arguments
        process.standardError = FileHandle.nullDevice
        guard (try? process.run()) != nil else { return false }
        process.waitUntilExit()
        return process.terminationStatus == 0
    }
}
