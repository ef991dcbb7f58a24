// The datapath of conv8: int8 convolutions, four multipliers.
//
// For each pixel of the output the bytes under the kernel are kept, row by row; then for each of its
// channels bias, multiplier and shift are loaded and a row of weights, a word a cycle. A row may begin
// anywhere: bytes of a word that are not its own are left out.
module conv8_core (
    input             clk,
    input             rst_n,
    // a job: it begins with `go`, it ends with `over` and a code of STATUS.ERROR
    input             go,
    output reg        over,
    output reg  [7:0] error,
    input      [31:0] WEIGHTS, BIAS, MULTIPLIER, SHIFT, IN_HEIGHT, IN_WIDTH, IN_CHANNELS,
    input      [31:0] OUT_HEIGHT, OUT_WIDTH, OUT_CHANNELS, KERNEL_HEIGHT, KERNEL_WIDTH,
    input      [31:0] STRIDE_HEIGHT, STRIDE_WIDTH, PAD_TOP, PAD_LEFT,
    input      [31:0] INPUT_ZERO_POINT, OUTPUT_ZERO_POINT, LOW, HIGH, INPUT, OUTPUT,
    // memory: a request until its grant, then the answer
    output            req,
    input             gnt,
    output     [31:0] addr,
    output            we,
    output      [3:0] be,
    output     [31:0] wdata,
    input             rvalid,
    input      [31:0] rdata,
    input             err
);
    localparam MOST = 4096;  // bytes of a patch

    // the state of the job
    localparam IDLE = 0, ROW = 1, GET_BIAS = 2, GET_MULTIPLIER = 3, GET_SHIFT = 4, MACS = 5,
               SCALE = 6, ROUND = 7, STORE = 8, STORED = 9, PIXEL = 10, FILL = 11, SPAN = 12;
    reg         [3:0]  state;
    reg         [31:0] channel, weight_row, result, row_of_kernel, filled;
    reg  signed [31:0] x, y, left_x, top_y;  // of the output, and of the patch's corner
    reg signed  [31:0] sum, multiplier;
    reg         [31:0] shift;
    reg signed  [63:0] scaled;

    // loads: `asks` words from `address` on are still to be requested, `comes` are to come
    reg         [31:0] address, asks, comes;
    reg signed  [13:0] first;  // place among them of the first byte of the word that comes
    reg         [12:0] size;   // bytes that are to come
    reg         [11:0] base;   // place in the patch where they go
    reg signed  [7:0]  row [0:MOST - 1];

    // the patch: its columns from `from_x` to `to_x` are in the image
    wire        [31:0] row_bytes = KERNEL_WIDTH * IN_CHANNELS;
    wire        [31:0] patch = KERNEL_HEIGHT * row_bytes;
    wire signed [31:0] from_x = left_x < 0 ? -left_x : 0;
    wire signed [31:0] beyond = left_x + $signed(KERNEL_WIDTH) - $signed(IN_WIDTH);
    wire signed [31:0] to_x = $signed(KERNEL_WIDTH) - (beyond > 0 ? beyond : 0);
    wire signed [31:0] line = top_y + $signed(row_of_kernel);
    wire               is_inside = line >= 0 && line < $signed(IN_HEIGHT) && from_x < to_x;
    wire               is_padded = left_x < 0 || beyond > 0 || top_y < 0
                                   || top_y + $signed(KERNEL_HEIGHT) > $signed(IN_HEIGHT);
    wire               arrives = rvalid;
    wire               last = arrives && comes == 1;

    assign req = asks != 0 || state == STORE;
    assign we = state == STORE;
    assign addr = we ? {result[31:2], 2'b00} : address;
    assign be = we ? 4'b0001 << result[1:0] : 4'b1111;
    assign wdata = {4{clamped[7:0]}};

    // four products, of the bytes that are the row's
    reg signed [31:0] products;
    integer lane;
    always @* begin
        products = 0;
        for (lane = 0; lane < 4; lane = lane + 1)
            if (is_own(first + lane, size))
                products = products
                    + ($signed(row[first + lane]) - $signed(INPUT_ZERO_POINT))
                    * $signed(rdata[8 * lane +: 8]);
    end

    // the size is an argument: always @* does not wait for what only a function reads
    function is_own(input signed [31:0] place, input [12:0] bytes);
        is_own = place >= 0 && place < $signed({1'b0, bytes});
    endfunction

    // the scaled sum, rounded (gemmlowp's double rounding) and clamped
    wire        [4:0]  left  = shift[31] ? 5'd0 : shift[4:0];
    wire        [5:0]  right = shift[31] ? -shift[5:0] : 6'd0;
    wire signed [63:0] half  = right == 0 ? 64'sd0 : (64'sd1 <<< right) >>> 1;
    wire signed [63:0] tie   = scaled < 0 && right != 0 ? 64'sd1 : 64'sd0;
    wire signed [63:0] moved = ((scaled + half - tie) >>> right) + $signed(OUTPUT_ZERO_POINT);
    wire signed [31:0] low = LOW, high = HIGH;
    reg  signed [31:0] clamped;

    // the result must not lie on an operand
    wire [31:0] outputs = OUT_HEIGHT * OUT_WIDTH * OUT_CHANNELS;
    wire overlaps = meets(INPUT, IN_HEIGHT * IN_WIDTH * IN_CHANNELS)
        || meets(WEIGHTS, OUT_CHANNELS * patch) || meets(BIAS, 4 * OUT_CHANNELS) || meets(MULTIPLIER, 4 * OUT_CHANNELS)
        || meets(SHIFT, 4 * OUT_CHANNELS);

    function meets(input [31:0] start, input [31:0] bytes);
        meets = start < OUTPUT + outputs && OUTPUT < start + bytes;
    endfunction

    task load_bytes(input [31:0] start, input [31:0] bytes);
        begin
            address <= {start[31:2], 2'b00};
            asks <= ({30'd0, start[1:0]} + bytes + 3) >> 2;
            comes <= ({30'd0, start[1:0]} + bytes + 3) >> 2;
            first <= -$signed({12'd0, start[1:0]});
            size <= bytes[12:0];
        end
    endtask

    task next_row;
        begin
            row_of_kernel <= row_of_kernel + 1;
            state <= SPAN;
            if (row_of_kernel + 1 == KERNEL_HEIGHT) begin
                channel <= 0;
                weight_row <= WEIGHTS;
                address <= BIAS;
                asks <= 1;
                comes <= 1;
                state <= GET_BIAS;
            end
        end
    endtask

    task load_word(input [31:0] start);
        begin
            address <= start + 4 * channel;
            asks <= 1;
            comes <= 1;
        end
    endtask

    task finish(input [7:0] code);
        begin
            state <= IDLE;
            over <= 1'b1;
            error <= code;
            asks <= 0;
        end
    endtask

    always @(posedge clk) begin
        over <= 1'b0;
        if (!rst_n) begin
            state <= IDLE;
            asks <= 0;
        end else begin
            if (asks != 0 && gnt) begin
                address <= address + 4;
                asks <= asks - 1;
            end
            if (arrives) begin
                comes <= comes - 1;
                first <= first + 4;
            end
            case (state)
                IDLE: if (go) begin
                    x <= 0;
                    y <= 0;
                    left_x <= -$signed(PAD_LEFT);
                    top_y <= -$signed(PAD_TOP);
                    result <= OUTPUT;
                    state <= PIXEL;
                    if (overlaps) finish(8'd4);
                    if (patch > MOST) finish(8'd1);
                end
                PIXEL: begin
                    filled <= 0;
                    row_of_kernel <= 0;
                    state <= is_padded ? FILL : SPAN;
                end
                FILL: begin
                    for (lane = 0; lane < 4; lane = lane + 1)
                        if (filled + lane < MOST) row[filled + lane] <= INPUT_ZERO_POINT[7:0];
                    filled <= filled + 4;
                    if (filled + 4 >= patch) state <= SPAN;
                end
                SPAN: if (is_inside) begin
                    load_bytes(
                        INPUT + (line * IN_WIDTH + left_x + from_x) * IN_CHANNELS,
                        (to_x - from_x) * IN_CHANNELS
                    );
                    base <= row_of_kernel * row_bytes + from_x * IN_CHANNELS;
                    state <= ROW;
                end else next_row;
                ROW: begin
                    if (arrives) for (lane = 0; lane < 4; lane = lane + 1)
                        if (is_own(first + lane, size))
                            row[$signed({1'b0, base}) + first + lane] <= rdata[8 * lane +: 8];
                    if (last) next_row;
                end
                GET_BIAS: if (last) begin
                    sum <= rdata;
                    load_word(MULTIPLIER);
                    state <= GET_MULTIPLIER;
                end
                GET_MULTIPLIER: if (last) begin
                    multiplier <= rdata;
                    load_word(SHIFT);
                    state <= GET_SHIFT;
                end
                GET_SHIFT: if (last) begin
                    shift <= rdata;
                    load_bytes(weight_row, patch);
                    state <= MACS;
                end
                MACS: begin
                    if (arrives) sum <= sum + products;
                    if (last) state <= SCALE;
                end
                SCALE: begin
                    scaled <= ($signed(sum <<< left) * multiplier + 64'sd1073741824) >>> 31;
                    state <= ROUND;
                end
                ROUND: begin
                    clamped <= moved < low ? low : moved > high ? high : moved[31:0];
                    state <= STORE;
                end
                STORE: if (gnt) state <= STORED;
                STORED: if (rvalid) begin
                    result <= result + 1;
                    channel <= channel + 1;
                    weight_row <= weight_row + patch;
                    address <= BIAS + 4 * (channel + 1);
                    asks <= 1;
                    comes <= 1;
                    state <= GET_BIAS;
                    if (channel + 1 == OUT_CHANNELS) begin
                        asks <= 0;
                        x <= x + 1;
                        left_x <= left_x + STRIDE_WIDTH;
                        state <= PIXEL;
                        if (x + 1 == OUT_WIDTH) begin
                            x <= 0;
                            y <= y + 1;
                            left_x <= -$signed(PAD_LEFT);
                            top_y <= top_y + STRIDE_HEIGHT;
                            if (y + 1 == OUT_HEIGHT) finish(8'd0);
                        end
                    end
                end
                default: state <= IDLE;
            endcase
            if (arrives && err) finish(8'd2);
        end
    end
endmodule
