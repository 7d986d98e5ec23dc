import Foundation
import GatewayCore
import GatewayStorage
import Testing

struct SpoolFileTests {
    @Test("Bytes are read back in parts, and only the owner may read the file")
    func roundTrip() async throws {
        try await withTemporaryDirectory { directory in
            let path = "\(directory)/deep/folder"
            let file = try SpoolFile(in: path)
            let bytes = (0..<200_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
            try await file.write(bytes, at: 0)
            try await file.write(bytes, at: bytes.count)
            #expect(try await file.size() == 400_000)
            #expect(try await file.read(at: 199_999, count: 2) == [bytes[199_999], bytes[0]])
            #expect(try await file.read(at: 399_999, count: 1 << 30) == [bytes[199_999]])
            #expect(try await file.read(at: 400_001, count: 10).isEmpty)
            #expect(try permissions("\(path)/audit.spool") == 0o600)
            try await file.cut(to: 3)
            #expect(try await file.read(at: 0, count: 10) == Array(bytes.prefix(3)))
        }
    }

    @Test("A second user of the file is refused until the first has closed it")
    func exclusive() async throws {
        try await withTemporaryDirectory { directory in
            var first: SpoolFile? = try SpoolFile(in: directory)
            await expectError(.conflict) { try SpoolFile(in: directory) }
            try await first?.write([1, 2, 3], at: 0)
            first = nil
            #expect(try await SpoolFile(in: directory).read(at: 0, count: 9) == [1, 2, 3])
        }
    }

    @Test("Opening a file that others could read restricts it to its owner")
    func permissionsOfOldFile() async throws {
        try await withTemporaryDirectory { directory in
            let path = "\(directory)/audit.spool"
            _ = FileManager.default.createFile(atPath: path, contents: nil, attributes: [.posixPermissions: 0o644])
            _ = try SpoolFile(in: directory)
            #expect(try permissions(path) == 0o600)
        }
    }

    @Test("A file that can't be created is an error that names its directory")
    func unwritable() async throws {
        try await withTemporaryDirectory { directory in
            try FileManager.default.createDirectory(
                atPath: "\(directory)/audit.spool",
                withIntermediateDirectories: true
            )
            let error = #expect(throws: GatewayError.self) { try SpoolFile(in: directory) }
            #expect(error?.code == .storeUnavailable)
            #expect(error?.message.contains(directory) == true)
        }
    }

    @Test("Content that is set aside is kept, and the file is empty afterwards")
    func aside() async throws {
        try await withTemporaryDirectory { directory in
            let file = try SpoolFile(in: directory)
            try await file.write([1, 2, 3], at: 0)
            let path = try await file.setAside("damaged-1")
            #expect(path == "\(directory)/audit.spool.damaged-1")
            #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == Data([1, 2, 3]))
            #expect(try await file.size() == 0)
            try await file.write([4], at: 0)
            #expect(try contents(of: directory).count == 2)
        }
    }

    #if os(Linux)
    @Test("A write that does not fit leaves no bytes behind")
    func full() async throws {
        // A limit on file size resembles a full disk and needs no privileges.
        await #expect(processExitsWith: .success) {
            var limit = rlimit(rlim_cur: 10_000, rlim_max: 10_000)
            signal(SIGXFSZ, SIG_IGN)
            guard unsafe setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit) == 0 else { exit(2) }
            let directory = FileManager.default.temporaryDirectory.appendingPathComponent("spool-\(UUID())").path
            defer { try? FileManager.default.removeItem(atPath: directory) }
            let file = try SpoolFile(in: directory)
            try await file.write(Array(repeating: 1, count: 8_000), at: 0)
            await expectError(.storeUnavailable) { try await file.write(Array(repeating: 2, count: 4_000), at: 8_000) }
            #expect(try await file.size() == 8_000)
            try await file.write(Array(repeating: 3, count: 1_000), at: 8_000)
            #expect(try await file.size() == 9_000)
        }
    }
    #endif
}
