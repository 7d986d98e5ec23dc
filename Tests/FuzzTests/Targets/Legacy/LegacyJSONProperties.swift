import FCMModel
import NIOCore

/// Properties of every JSON body sent to `/fcm/send`.
enum LegacyJSONProperties {
    static func check(_ input: [UInt8]) throws(FuzzFinding) {
        let request: LegacySendRequest
        var shape = LegacyReplyWriter.Shape.results(count: 1)
        do {
            request = try LegacyRequestDecoder.decode(ByteBuffer(bytes: input), shape: &shape)
        } catch {
            let reply = LegacyReplyWriter(shape: shape, format: .json, multicastID: 1).reply(to: error)
            try FuzzFinding.require([200, 400].contains(reply.status), "refused with status \(reply.status)")
            try Self.checkRefusal(error, of: input)
            return
        }
        try LegacyRequests.check(request)
        guard Self.isReadAlike(input), let theirs = EmulatorOpinion.json(input) else { return }
        try FuzzFinding.requireEqual(LegacyRequests.words(request), theirs, "the emulator reads it differently")
    }

    /// The emulator is stricter, so every body that it accepts is accepted here.
    private static func checkRefusal(_ refusal: Refusal, of input: [UInt8]) throws(FuzzFinding) {
        guard Self.isReadAlike(input), EmulatorOpinion.json(input) != nil else { return }
        // It reads numbers through Foundation, which rounds them, and writes them in fewer or more bytes.
        let holdsLongNumber = input.contains { $0 == UInt8(ascii: ".") || $0 | 0x20 == UInt8(ascii: "e") }
        switch refusal.code {
        case .messageTooBig: return
        case .invalidField where holdsLongNumber: return
        default: throw FuzzFinding("refused, though the emulator accepts it: \(refusal)")
        }
    }

    /// True if Foundation, which the emulator uses, reads the text unchanged. Beyond ASCII it drops a byte-order mark
    /// at the start and treats names as equal that differ only in their normalisation.
    private static func isReadAlike(_ input: [UInt8]) -> Bool {
        var previous: UInt8 = 0
        for byte in input {
            if byte >= 0x80 || (previous == UInt8(ascii: "\\") && byte == UInt8(ascii: "u")) { return false }
            previous = byte
        }
        return true
    }
}
