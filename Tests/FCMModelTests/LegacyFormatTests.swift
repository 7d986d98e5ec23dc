import FCMModel
import Testing

@Suite("LegacyFormat")
struct LegacyFormatTests {
    @Test(
        "JSON is chosen by its media type alone",
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

    @Test("The vectors that reach the JSON decoder, and those alone, are JSON by their type")
    func vectors() throws {
        for vector in try ValidationVector.all() where !vector.headers.isEmpty {
            let type = vector.headers.first { $0.key.lowercased() == "content-type" }?.value
            #expect((LegacyFormat(contentType: type) == .json) == vector.reachesDecoder)
        }
    }
}
