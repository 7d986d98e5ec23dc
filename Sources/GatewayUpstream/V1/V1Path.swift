/// The path that a project's messages go to.
enum V1Path {
    /// The path's template, for spans.
    static let sendTemplate = "/v1/projects/{project}/messages:send"
    private static let digits = Array("0123456789ABCDEF".utf8)

    /// `/v1/projects/<project>/messages:send`; what can't stand in a path is escaped (RFC 3986, 2.1).
    static func send(project: String) -> String {
        var segment: [UInt8] = []
        for byte in project.utf8 {
            if Self.isPlain(byte) {
                segment.append(byte)
            } else {
                segment += [UInt8(ascii: "%"), Self.digits[Int(byte >> 4)], Self.digits[Int(byte & 0xF)]]
            }
        }
        return "/v1/projects/\(String(decoding: segment, as: UTF8.self))/messages:send"
    }

    private static func isPlain(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
            UInt8(ascii: "~"), UInt8(ascii: ":"):
            true
        default: false
        }
    }
}
