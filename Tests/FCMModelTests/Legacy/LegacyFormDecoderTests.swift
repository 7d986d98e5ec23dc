import FCMModel
import NIOCore
import Testing
import VectorTestKit

@Suite("LegacyFormDecoder")
struct LegacyFormDecoderTests {
    private static let writer = LegacyReplyWriter(shape: .results(count: 1), format: .form, multicastID: 1)

    @Test("Forms are accepted and refused as in the vectors", arguments: try FormVector.all())
    func vectors(vector: FormVector) throws {
        #expect(LegacyFormat(contentType: vector.contentType) == .form)
        let result: Result<LegacySendRequest, Refusal>
        do throws(Refusal) {
            result = .success(try LegacyFormDecoder.decode(vector.body))
        } catch {
            result = .failure(error)
        }
        switch (vector.expectation, result) {
        case (.accepted(let json, let payloadBytes), .success(let request)):
            let same = try LegacyRequestDecoder.decode(json)
            #expect(request == same)
            #expect(request.message.bytesOfTexts == same.message.bytesOfTexts)
            #expect(request.payloadBytes == payloadBytes ?? same.payloadBytes)
        case (.rejected(let status, let contentType, let body, let payloadBytes), .failure(let refusal)):
            let reply = Self.writer.reply(to: refusal)
            #expect(reply.status == status)
            #expect(reply.contentType == contentType + "; charset=UTF-8")
            #expect(String(buffer: reply.body) == body)
            #expect(reply.retryAfter == nil)
            let size = payloadBytes.map { "The payload has \($0) bytes" }
            #expect((refusal.code == .messageTooBig ? refusal.detail : nil) == size)
        case (.unauthorized(let status), .success):
            // The form is valid; its headers cause this refusal.
            #expect(Self.writer.reply(to: Refusal(.forbidden)).status == status)
        case (_, .success):
            Issue.record("accepted")
        case (_, .failure(let refusal)):
            Issue.record("refused: \(refusal)")
        }
    }

    @Test("One form vector is decided by its credential")
    func completeness() throws {
        let unauthorized = try FormVector.all()
            .filter { if case .unauthorized = $0.expectation { true } else { false } }
        #expect(unauthorized.map(\.id) == ["PLT-044"])
    }

    @Test(
        "Broken escapes are refused in any position",
        arguments: ["%", "%4", "%4g", "x=%", "%ff=x", "unknown=%c3%28", "a=%C3", "%zz=1", "\u{0}%0"]
    )
    func brokenEscapes(segment: String) {
        #expect(throws: Refusal.self) { try Self.decode("registration_id=a&\(segment)") }
        #expect(throws: Refusal.self) { try Self.decode("\(segment)&registration_id=a") }
    }

    @Test("Raw bytes that are not UTF-8 are refused")
    func rawBytes() {
        var body = ByteBuffer(string: "registration_id=a&data.x=")
        body.writeInteger(UInt8(0xFF))
        #expect(throws: Refusal.self) { try LegacyFormDecoder.decode(body) }
    }

    @Test("The last of repeated options counts, even if it is empty")
    func repeatedOptions() throws {
        let message =
            try Self.decode(
                "dry_run=1&dry_run=&time_to_live=x&time_to_live=5&collapse_key=a&collapse_key=b&registration_id=t"
            )
            .message
        #expect(!message.dryRun)
        #expect(message.timeToLive == 5)
        #expect(message.collapseKey == "b")
    }

    @Test("Data keys are compared by bytes, and a repeated key keeps its place")
    func dataKeys() throws {
        let message = try Self.decode("registration_id=t&data.e%CC%81=1&data.z=2&data.%C3%A9=3&data.e%CC%81=4").message
        #expect(message.data.map { Array($0.key.utf8) } == [Array("e\u{301}".utf8), [0x7A], Array("\u{E9}".utf8)])
        #expect(message.data.map(\.value) == ["4", "2", "3"])
    }

    @Test(
        "A form has at most 2,000 parameters, including empty and unknown ones",
        arguments: ["&", "&a", "&=", "&data.k=v", "&+=%41"]
    )
    func parameterCount(segment: String) throws {
        // The empty segment after the last `&` does not count.
        let most = String(repeating: segment, count: segment == "&" ? 2_000 : 1_999)
        #expect(try Self.decode("registration_id=t\(most)").target == .token("t"))
        #expect(throws: Refusal.self) { try Self.decode("registration_id=t\(most)\(segment)") }
        #expect(throws: Refusal.self) { try Self.decode("registration_id=t\(most)&\(segment)&%") }
    }

    @Test("A protocol name with an added mark or joiner is another name", arguments: ["\u{301}", "\u{200D}"])
    func names(mark: String) throws {
        let message = try Self.decode("registration_id=t&dry_run\(mark)=1&time_to_live\(mark)=x&data.\(mark)=v").message
        #expect(message.data == [DataEntry(key: mark, value: "v")])
        #expect(!message.dryRun && message.timeToLive == nil)
        #expect(throws: Refusal.self) { try Self.decode("registration_id=t&dry_run=true\(mark)") }
    }

    @Test("Two tokens are too many even if one is empty", arguments: ["", "a"])
    func tokens(second: String) {
        #expect(throws: Refusal(.invalidField, "registration_id is given more than once")) {
            try Self.decode("registration_id=\(second)&registration_id=a")
        }
    }

    private static func decode(_ text: String) throws -> LegacySendRequest {
        try LegacyFormDecoder.decode(ByteBuffer(string: text))
    }
}

@Suite("LegacyFormat")
struct LegacyFormatTests {
    @Test(
        "Only the JSON media type selects JSON",
        arguments: [
            ("application/json", .json), ("Application/JSON; charset=UTF-8", .json), (" application/json ;x=y", .json),
            ("application/json\t", .json), (nil, .form), ("", .form), ("text/plain", .form), ("text/json", .form),
            ("application/x-www-form-urlencoded;charset=UTF-8", .form), ("application/jsonp", .form),
            ("application/ json", .form), ("multipart/form-data; x=application/json", .form),
        ] as [(String?, LegacyFormat)]
    )
    func contentTypes(contentType: String?, format: LegacyFormat) {
        #expect(LegacyFormat(contentType: contentType) == format)
    }

    @Test("Exactly the vectors that reach the JSON decoder have the JSON media type")
    func vectors() throws {
        for vector in try ValidationVector.all() where !vector.headers.isEmpty {
            let type = vector.headers.first { $0.key.lowercased() == "content-type" }?.value
            #expect((LegacyFormat(contentType: type) == .json) == vector.reachesDecoder)
        }
    }
}
