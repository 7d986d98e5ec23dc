import NIOCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// A filter on a listening socket that drops what asks for a new connection and lets everything else pass.
///
/// The system then leaves the client's handshake unanswered instead of refusing or accepting it.
enum HandshakeFilter {
    #if os(Linux)
    /// An instruction of a classic BPF program, as `<linux/filter.h>` lays it out.
    private struct Instruction {
        var code: UInt16
        var jumpIfTrue: UInt8 = 0
        var jumpIfFalse: UInt8 = 0
        var operand: UInt32
    }

    @unsafe
    private struct Program {
        var count: UInt16
        var instructions: UnsafePointer<Instruction>?
    }

    /// The program reads a segment from TCP's header on.
    private static let instructions = [
        // Load the byte with the flags.
        Instruction(code: 0x30, operand: 13),
        // Without SYN, skip one.
        Instruction(code: 0x45, jumpIfFalse: 1, operand: 0x02),
        // Drop it.
        Instruction(code: 0x06, operand: 0),
        // Let it pass, all of it.
        Instruction(code: 0x06, operand: .max),
    ]

    /// Puts the filter in force, until the socket is closed; on the loop of the channel only.
    ///
    /// - Returns: whether the system took it.
    static func attach(to listener: any Channel) -> Bool {
        let isAttached = try? listener.pipeline.syncOperations.withUnsafeTransportIfAvailable {
            (socket: NIOBSDSocket.Handle) in
            unsafe Self.instructions.withUnsafeBufferPointer { instructions in
                var program = unsafe Program(
                    count: UInt16(instructions.count),
                    instructions: instructions.baseAddress
                )
                let size = socklen_t(unsafe MemoryLayout<Program>.size)
                return unsafe setsockopt(socket, SOL_SOCKET, SO_ATTACH_FILTER, &program, size) == 0
            }
        }
        return isAttached == true
    }
    #else
    /// There is none on other systems.
    static func attach(to listener: any Channel) -> Bool { false }
    #endif
}
