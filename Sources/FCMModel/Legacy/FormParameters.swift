import NIOCore

/// The parameters of a form in the order of the text, decoded (P-DECODE).
struct FormParameters {
    /// One parameter; without `=` its value is empty.
    struct Parameter {
        let name: String
        let value: String
    }

    let all: [Parameter]

    /// Reads a form; `nil` for a broken percent escape or bytes that are not UTF-8, wherever they stand.
    init?(_ body: ByteBuffer) {
        var all: [Parameter] = []
        for segment in body.readableBytesView.split(separator: UInt8(ascii: "&")) {
            let end = segment.firstIndex(of: UInt8(ascii: "=")) ?? segment.endIndex
            let rest = segment[end...].dropFirst()
            guard let name = Self.decode(segment[..<end]), let value = Self.decode(rest) else { return nil }
            all.append(Parameter(name: name, value: value))
        }
        self.all = all
    }

    private static func decode(_ bytes: ByteBufferView) -> String? {
        PathSegment.decoded(bytes.lazy.map { $0 == UInt8(ascii: "+") ? UInt8(ascii: " ") : $0 })
    }
}
