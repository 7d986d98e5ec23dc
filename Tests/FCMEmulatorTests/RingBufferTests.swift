import Testing

@testable import FCMEmulator

@Suite("RingBuffer")
struct RingBufferTests {
    @Test("The oldest elements go first")
    func dropsOldest() {
        var buffer = RingBuffer<Int>(capacity: 3)
        let dropped = (1...7).map { buffer.append($0) }
        #expect(dropped == [nil, nil, nil, 1, 2, 3, 4])
        #expect(buffer.newest(10) == [7, 6, 5])
        #expect(buffer.newest(2) == [7, 6])
        #expect(buffer[0] == 5)
        #expect(buffer[3] == nil)
        #expect(buffer[-1] == nil)
    }

    @Test("Room made at the front is used again")
    func removeFirst() {
        var buffer = RingBuffer<Int>(capacity: 3)
        for element in 1...2 { buffer.append(element) }
        #expect(buffer.removeFirst() == 1)
        for element in 3...4 { buffer.append(element) }
        #expect(buffer.newest(10) == [4, 3, 2])
        #expect(buffer.newest(10) { $0 != 3 } == [4, 2])
        while buffer.removeFirst() != nil {}
        #expect(buffer.count == 0)
        #expect(buffer.removeFirst() == nil)
    }
}
