import NIOCore
import Synchronization
import Testing

@testable import EventLoopHTTP

struct HTTPDateLineTests {
    @Test(
        "A time is formatted as an HTTP date, one before 1970 as the epoch",
        arguments: [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"), (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"), (951_868_799, "Tue, 29 Feb 2000 23:59:59 GMT"),
            (951_868_800, "Wed, 01 Mar 2000 00:00:00 GMT"), (1_709_164_800, "Thu, 29 Feb 2024 00:00:00 GMT"),
            (1_735_689_599, "Tue, 31 Dec 2024 23:59:59 GMT"), (1_735_689_600, "Wed, 01 Jan 2025 00:00:00 GMT"),
            (4_107_542_400, "Mon, 01 Mar 2100 00:00:00 GMT"), (4_107_542_399, "Sun, 28 Feb 2100 23:59:59 GMT"),
            (253_402_300_799, "Fri, 31 Dec 9999 23:59:59 GMT"), (-1, "Thu, 01 Jan 1970 00:00:00 GMT"),
        ] as [(Int64, String)]
    )
    func text(seconds: Int64, text: String) {
        #expect(HTTPDateLine.text(unixSeconds: seconds) == text)
    }

    @Test("The wall clock is read again only when its second changes")
    func renewal() {
        let asked = Mutex(0)
        let wall = Mutex(Duration.milliseconds(1_750))
        var line = HTTPDateLine {
            asked.withLock { $0 += 1 }
            return wall.withLock { $0 }
        }
        let start = NIODeadline.uptimeNanoseconds(5_000_000_000)
        for milliseconds in [0, 1, 100, 249] as [Int64] {
            #expect(
                String(decoding: line.bytes(at: start + .milliseconds(milliseconds)), as: UTF8.self)
                    .contains(":01 GMT\r\n")
            )
        }
        #expect(asked.withLock { $0 } == 1)
        wall.withLock { $0 = .milliseconds(2_000) }
        #expect(String(decoding: line.bytes(at: start + .milliseconds(250)), as: UTF8.self).contains(":02 GMT\r\n"))
        #expect(asked.withLock { $0 } == 2)
        // The wall clock is set back; the line follows within a second of the loop's time.
        wall.withLock { $0 = .milliseconds(500) }
        #expect(String(decoding: line.bytes(at: start + .milliseconds(1_250)), as: UTF8.self).contains(":00 GMT\r\n"))
    }
}
