import NIOCore

@testable import FCMModel

/// Properties of every form sent to `/fcm/send`.
enum LegacyFormProperties {
    static func check(_ input: [UInt8]) throws(FuzzFinding) {
        let body = ByteBuffer(bytes: input)
        let parameters = FormParameters.read(body)
        try FuzzFinding.requireEqual(
            parameters?.map { Self.bytes($0.name, $0.value) },
            EmulatorOpinion.formFields(input)?.map { Self.bytes($0[0], $0[1]) },
            "the emulator decodes it differently"
        )
        let request: LegacySendRequest?
        do {
            request = try LegacyFormDecoder.decode(body)
        } catch {
            let reply = LegacyReplyWriter(shape: .results(count: 1), format: .form, multicastID: 1)
                .reply(to: error)
            try FuzzFinding.requireEqual(reply.status, 200, "a form is answered with 200")
            request = nil
        }
        if let request {
            guard case .token = request.target else { throw FuzzFinding("a form with another target than a token") }
            try FuzzFinding.require(request.localErrors.isEmpty, "errors of single recipients in a form")
            try FuzzFinding.requireEqual(request.payloadBytes, request.message.payloadBytes, "another size")
            try LegacyRequests.check(request)
            let again = try? LegacyFormDecoder.decode(ByteBuffer(bytes: Self.form(of: request)))
            try FuzzFinding.requireEqual(again, request, "read differently when written as a form again")
        }
        // Beyond ASCII, the emulator treats names as equal that differ only in their normalisation.
        guard let parameters, parameters.allSatisfy({ Self.isASCII($0.name) && Self.isASCII($0.value) }) else {
            return
        }
        let ours = request.map { LegacyRequests.words($0) }
        try FuzzFinding.requireEqual(ours, EmulatorOpinion.form(input), "the emulator disagrees")
    }

    private static func bytes(_ name: String, _ value: String) -> [[UInt8]] {
        [Array(name.utf8), Array(value.utf8)]
    }

    private static func isASCII(_ text: String) -> Bool {
        text.utf8.allSatisfy { $0 < 0x80 }
    }

    /// A request as a form, with every byte escaped except letters and digits.
    private static func form(of request: LegacySendRequest) -> [UInt8] {
        var pairs: [(String, String)] = []
        if case .token(let token) = request.target { pairs.append(("registration_id", token)) }
        let message = request.message
        if message.dryRun { pairs.append(("dry_run", "1")) }
        if let seconds = message.timeToLive { pairs.append(("time_to_live", String(seconds))) }
        if let key = message.collapseKey { pairs.append(("collapse_key", key)) }
        if let name = message.restrictedPackageName { pairs.append(("restricted_package_name", name)) }
        pairs += message.data.map { ("data.\($0.key)", $0.value) }
        var form: [UInt8] = []
        for (name, value) in pairs {
            if !form.isEmpty { form.append(UInt8(ascii: "&")) }
            Self.append(name, to: &form)
            form.append(UInt8(ascii: "="))
            Self.append(value, to: &form)
        }
        return form
    }

    private static let hexDigits = Array("0123456789abcdef".utf8)

    private static func append(_ text: String, to form: inout [UInt8]) {
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"):
                form.append(byte)
            default:
                form += [UInt8(ascii: "%"), Self.hexDigits[Int(byte >> 4)], Self.hexDigits[Int(byte & 15)]]
            }
        }
    }
}
