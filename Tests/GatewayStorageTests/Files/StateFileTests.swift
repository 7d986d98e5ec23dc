import Foundation
import GatewayCore
import GatewayStorage
import Testing

struct StateFileTests {
    @Test("What was written is read, whole and by its owner alone", arguments: [0, 1, 4_096, 300_000])
    func roundTrip(count: Int) async throws {
        try await withTemporaryDirectory { directory in
            let file = StateFile(path: directory + "/state")
            #expect(try file.read(maxBytes: 1) == nil)
            for round in 0..<2 {
                let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ round) }
                try file.write(bytes)
                #expect(try file.read(maxBytes: count) == bytes)
            }
            #expect(try permissions(directory + "/state") == 0o600)
            #expect(try contents(of: directory).count == 1)
        }
    }

    @Test("A file that is larger than it can be is not read")
    func tooLarge() async throws {
        try await withTemporaryDirectory { directory in
            let file = StateFile(path: directory + "/state")
            try file.write([1, 2, 3])
            await expectError(.invalid) { try file.read(maxBytes: 2) }
        }
    }

    @Test("What can't be written leaves the old content, and no draft")
    func unwritable() async throws {
        try await withTemporaryDirectory { directory in
            await expectError(.storeUnavailable) { try StateFile(path: directory + "/no/state").write([1]) }
            // A directory in the file's place can't be replaced, whoever asks.
            try FileManager.default.createDirectory(atPath: directory + "/state/in", withIntermediateDirectories: true)
            await expectError(.storeUnavailable) { try StateFile(path: directory + "/state").write([1]) }
            #expect(try FileManager.default.contentsOfDirectory(atPath: directory) == ["state"])
            #expect(throws: GatewayError.self) { try StateFile(path: directory + "/state").read(maxBytes: 1 << 20) }
        }
    }
}
