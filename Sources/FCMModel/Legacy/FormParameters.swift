import NIOCore

/// The parameters of a form in the order of the text, decoded (P-DECODE).
struct FormParameters {
    /// One parameter; without `=` its value is empty.
    struct Parameter {
        let name: String
        let value: String
    }

    /// As many as a JSON text may have members; what stands between two `&` counts, empty or not.
    private static let maxSegments = 2_000

    let all: [Parameter]

    /// Reads a form; `nil` for a broken percent escape or bytes that are not UTF-8, wherever they stand, and for more than
    /// 2,000 parameters.
    init?(_ body: ByteBuffer) {
        var all: [Parameter] = []
        var rest = body.readableBytesView
        var segmentCount = 0
        while !rest.isEmpty {
            segmentCount += 1
            guard segmentCount <= Self.maxSegments else { return nil }
            let segment = rest[..<(rest.firstIndex(of: UInt8(ascii: "&")) ?? rest.endIndex)]
            rest = rest[segment.endIndex...].dropFirst()
            guard !segment.isEmpty else { continue }
            let end = segment.firstIndex(of: UInt8(ascii: "=")) ?? segment.endIndex
            guard let name = Self.decode(segment[..<end]), let value = Self.decode(segment[end...].dropFirst()) else {
                return nil
            }
            all.append(Parameter(name: name, value: value))
        }
        self.all = all
    }

    private static func decode(_ bytes: ByteBufferView) -> String? {
        PercentEncoding.decoded(bytes.lazy.map { $0 == UInt8(ascii: "+") ? UInt8(ascii: " ") : $0 })
    }
}
