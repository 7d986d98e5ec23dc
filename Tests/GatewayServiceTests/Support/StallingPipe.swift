import Foundation

@testable import GatewayService

/// A pipe that nobody reads but the test, when it likes.
struct StallingPipe {
    private let pipe = Pipe()

    init() {
        _ = fcntl(self.pipe.fileHandleForReading.fileDescriptor, F_SETFL, O_NONBLOCK)
    }

    /// Its end for writing, which waits for nobody.
    var output: TimedOutput {
        TimedOutput(descriptor: self.pipe.fileHandleForWriting.fileDescriptor, timeoutMs: 0)
    }

    /// Reads all that is in it.
    func drain() -> Data {
        var all = Data()
        var block = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            // POSIX fills the block during the call.
            let count = unsafe block.withUnsafeMutableBytes { bytes in
                unsafe read(self.pipe.fileHandleForReading.fileDescriptor, bytes.baseAddress, bytes.count)
            }
            guard count > 0 else { return all }
            all += block[..<count]
        }
    }

    /// Ends the reading for good.
    func closeReader() throws {
        try self.pipe.fileHandleForReading.close()
    }
}
